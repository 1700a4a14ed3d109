/**
 * Threads that were told to end, until they have.
 *
 * Deno asks a thread to end, and says that it has without waiting for it. One whose function never
 * gives way runs on, keeps a core, and cannot be ended from outside.
 *
 * @module
 */

/** Who is told of threads that have not ended in time. */
export interface LateThreads {
  /** Of each that a function may keep, when it is counted, with what it was watched as. */
  readonly onRunaway?: (what: string) => void;
  /** Of each that had not begun, when it is counted: none of a user's functions has run there. */
  readonly onUnbegun?: () => void;
}

/** A thread that was told to end. */
interface Told {
  isRunaway: boolean;
  forget?: () => void;
}

/** See the module. */
export class EndingThreads {
  readonly #late: LateThreads;
  readonly #told = new Set<Told>();
  #closed = false;

  constructor(late: LateThreads = {}) {
    this.#late = late;
  }

  /** How many have not ended yet. */
  get count(): number {
    return this.#told.size;
  }

  /** How many of them have not ended in time: each is lost, whether it had begun or not. */
  get runaways(): number {
    return [...this.#told].filter(({ isRunaway }) => isRunaway).length;
  }

  /**
   * Counts a thread that is about to be told to end. Resolves when it can be told.
   *
   * @param port Leads to the thread, which may read from it or not. It may be closed afterwards.
   * @param what Names the thread for `onRunaway`.
   * @param patienceMs After how long it is a runaway, in ms.
   * @param hasBegun Whether it has loaded, so that a function may run there.
   */
  async watch(
    port: MessagePort,
    what: string,
    patienceMs: number,
    hasBegun = true,
  ): Promise<void> {
    if (this.#closed) return;
    const told: Told = { isRunaway: false };
    this.#told.add(told);
    // Loaded once it is needed. Only Node's ports say that the other end is gone.
    const { MessageChannel } = await import("node:worker_threads");
    if (this.#closed) return;
    const { port1, port2 } = new MessageChannel();
    const timer = setTimeout(() => {
      told.isRunaway = true;
      if (hasBegun) this.#late.onRunaway?.(what);
      else this.#late.onUnbegun?.();
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
