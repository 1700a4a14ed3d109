/**
 * Threads that were told to end, until they have.
 *
 * Deno asks a thread to end, and says that it has without waiting for it. One whose function never
 * gives way runs on, keeps a core, and cannot be ended from outside.
 *
 * @module
 */

/** A thread that was told to end. */
interface Told {
  isRunaway: boolean;
  forget?: () => void;
}

/** See the module. */
export class EndingThreads {
  readonly #onRunaway: (what: string) => void;
  readonly #told = new Set<Told>();
  #closed = false;

  /** @param onRunaway Told of each that has not ended in time, when it is counted. */
  constructor(onRunaway: (what: string) => void = () => {}) {
    this.#onRunaway = onRunaway;
  }

  /** How many have not ended yet. */
  get count(): number {
    return this.#told.size;
  }

  /** How many of them have not ended in time. */
  get runaways(): number {
    return [...this.#told].filter(({ isRunaway }) => isRunaway).length;
  }

  /**
   * Counts a thread that is about to be told to end. Resolves when it can be told.
   *
   * @param port Leads to the thread, which may read from it or not. It may be closed afterwards.
   * @param what Names the thread for `onRunaway`.
   * @param patienceMs After how long it is a runaway, in ms.
   */
  async watch(port: MessagePort, what: string, patienceMs: number): Promise<void> {
    if (this.#closed) return;
    const told: Told = { isRunaway: false };
    this.#told.add(told);
    // Loaded once it is needed. Only Node's ports say that the other end is gone.
    const { MessageChannel } = await import("node:worker_threads");
    if (this.#closed) return;
    const { port1, port2 } = new MessageChannel();
    const timer = setTimeout(() => {
      told.isRunaway = true;
      this.#onRunaway(what);
    }, patienceMs);
    told.forget = () => {
      clearTimeout(timer);
      port1.close();
    };
    port1.on("close", () => {
      clearTimeout(timer);
      this.#told.delete(told);
    });
    port1.on("message", () => {}); // else it does not listen, nor hear of the end
    // Whatever lies unread in a thread's ports goes with it: this end, too.
    port.postMessage(null, [port2 as unknown as MessagePort]);
  }

  /** Forgets all of them. */
  close(): void {
    this.#closed = true;
    for (const { forget } of this.#told) forget?.();
    this.#told.clear();
  }
}
