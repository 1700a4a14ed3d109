/**
 * Watches threads that were asked to end, until they have ended.
 *
 * Deno asks a thread to end and reports success without waiting for it. A thread whose function
 * never yields continues, occupies a core, and cannot be ended from outside.
 */

/** Callbacks for threads that have not ended in time: runaways. */
export interface LateThreads {
  /** Called with its name for each runaway in which a user function may still run. */
  readonly onRunaway?: (what: string) => void;
  /** Called for each runaway that had not loaded: no user function ran there. */
  readonly onNeverLoaded?: () => void;
}

interface WatchedThread {
  isRunaway: boolean;
  forget?: () => void;
}

/** Threads that were asked to end, and how many of them did not. */
export class EndingThreads {
  readonly #late: LateThreads;
  readonly #watched = new Set<WatchedThread>();
  #closed = false;

  constructor(late: LateThreads = {}) {
    this.#late = late;
  }

  /** How many of the threads have not ended yet. */
  get count(): number {
    return this.#watched.size;
  }

  /** How many threads are runaways: each is lost, whether it had loaded or not. */
  get runaways(): number {
    return [...this.#watched].filter(({ isRunaway }) => isRunaway).length;
  }

  /**
   * Watches a thread that is to be ended. Resolves when the caller may end it.
   * @param port Leads to the thread, which need not read from it. It may be closed afterwards.
   * @param what Names the thread for `onRunaway`.
   * @param patienceMs After how long the thread is a runaway, in ms.
   * @param hasLoaded Whether it has loaded, so that a function may run there.
   */
  async watch(
    port: MessagePort,
    what: string,
    patienceMs: number,
    hasLoaded = true,
  ): Promise<void> {
    if (this.#closed) return;
    const watched: WatchedThread = { isRunaway: false };
    this.#watched.add(watched);
    // Loaded lazily. Only Node's ports report that the other end is closed.
    const { MessageChannel } = await import("node:worker_threads");
    if (this.#closed) return;
    const { port1, port2 } = new MessageChannel();
    const timer = setTimeout(() => {
      watched.isRunaway = true;
      if (hasLoaded) this.#late.onRunaway?.(what);
      else this.#late.onNeverLoaded?.();
    }, patienceMs);
    watched.forget = () => {
      clearTimeout(timer);
      port1.close();
    };
    port1.on("close", () => {
      clearTimeout(timer);
      this.#watched.delete(watched);
    });
    port1.on("message", () => {}); // otherwise it does not listen, and misses the end
    // If the thread ends without reading this message, `port2` is closed with it, which is the signal.
    port.postMessage(null, [port2 as unknown as MessagePort]);
  }

  /** Forgets all of them. */
  close(): void {
    this.#closed = true;
    for (const { forget } of this.#watched) forget?.();
    this.#watched.clear();
  }
}
