/** Threads that the hub has started for a node, and that end with the node. */
import { startThread } from "./start_thread.ts";

/** The threads of one node, numbered by that node. */
export class OwnedThreads {
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
    const end = startThread(program, name, port, resolve);
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

  /** Ends all of them; `run` starts no other afterwards. */
  close(): void {
    this.#closed = true;
    for (const id of [...this.#ends.keys()]) this.end(id);
  }
}
