/** Threads in addition to a node's own, for work that might block it. */

/**
 * Starts a thread with a module as its program, whose first message is `port`. The returned
 * function ends it at once, whatever it does; `onDeath` is called if it dies of an uncaught error.
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
