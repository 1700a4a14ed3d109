/**
 * Starts a thread whose program is a module and whose first message is `port`. Returns a function
 * that ends it at once. `onDeath` is called if it dies of an uncaught error.
 */
export type StartThread = (
  program: string,
  name: string,
  port: MessagePort,
  onDeath: (why: string) => void,
) => () => void;

/** Starts a thread below the calling one. */
export const startThread: StartThread = (program, name, port, onDeath) => {
  const worker = new Worker(program, { type: "module", name });
  worker.addEventListener("error", (event) => {
    event.preventDefault();
    onDeath(event.message);
  });
  worker.postMessage(port, [port]);
  return () => worker.terminate();
};
