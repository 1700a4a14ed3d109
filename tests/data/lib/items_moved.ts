/** Counts what arrays cost as queues: the items that they move or copy. */

/** How many items `shift()`, `splice()` and `slice()` move or copy, at most, while `run` runs. */
export async function itemsMoved(run: () => Promise<unknown>): Promise<number> {
  const { shift, slice, splice } = Array.prototype;
  let moved = 0;
  const counted = <A extends unknown[], R>(method: (...args: A) => R) =>
    function (this: unknown[], ...args: A): R {
      moved += this.length;
      return method.apply(this, args);
    };
  Object.assign(Array.prototype, {
    shift: counted(shift),
    slice: counted(slice),
    splice: counted(splice),
  });
  try {
    await run();
  } finally {
    Object.assign(Array.prototype, { shift, slice, splice });
  }
  return moved;
}
