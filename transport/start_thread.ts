/** Threads that a node starts for work that might block its own thread. */

/**
 * Starts a thread whose program is a module and whose first message is `port`. Returns a function
 * that ends it at once. `onDeath` gets the reason if the thread dies of an uncaught error, or cannot
 * be started. It is not called for a thread that was ended.
 */
export type StartThread = (
  program: string,
  name: string,
  port: MessagePort,
  onDeath: (why: string) => void,
) => () => void;

export const startThread: StartThread = (program, name, port, onDeath) => {
  const worker = new Worker(program, { type: "module", name });
  worker.addEventListener("error", (event) => {
    event.preventDefault();
    onDeath(event.message);
  });
  worker.postMessage(port, [port]);
  return () => worker.terminate();
};

/** The threads of one node, numbered by that node. */
export class OwnedThreads {
  /** Ends each thread that runs. */
  readonly #ends = new Map<number, () => void>();
  #closed = false;

  /** Starts a thread. Resolves when it has ended, with the reason. */
  run(id: number, program: string, name: string, port: MessagePort): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>();
    if (this.#closed) {
      port.close();
      resolve("its owner is gone");
      return promise;
    }
    const end = startThread(program, name, port, (why) => {
      this.#ends.delete(id);
      resolve(why);
    });
    this.#ends.set(id, () => {
      end();
      resolve("it was ended");
    });
    return promise;
  }

  end(id: number): void {
    this.#ends.get(id)?.();
    this.#ends.delete(id);
  }

  /** Ends all threads; `run` starts none afterwards. */
  close(): void {
    this.#closed = true;
    for (const id of [...this.#ends.keys()]) this.end(id);
  }
}
