/** An error that is its own cause, as a user's module may throw it. */

/** Far more than anything that follows causes needs. */
const READS_MAX = 1_000;

/** Returns the error. Code that follows its causes without end gets an error instead. */
export function circularError(message: string): Error {
  const error = new Error(message);
  let reads = 0;
  return Object.defineProperty(error, "cause", {
    get: () => {
      if (++reads > READS_MAX) throw new Error(`the cause was read ${reads} times`);
      return error;
    },
  });
}
