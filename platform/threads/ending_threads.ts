/**
 * Watches threads that were asked to end, until they have ended.
 *
 * Deno asks a thread to end and reports success without waiting for it. A thread whose function
 * never yields continues, occupies a core, and cannot be ended from outside.
 */

/** Callbacks for threads that have not ended in time: runaways. */
export interface LateThreads {
  /** Called for each runaway in which a user function may still run, with the name of the thread. */
  readonly onRunaway?: (what: string) => void;
  /** Called for each runaway that had not loaded, so that no user function ran there. */
  readonly onNeverLoaded?: () => void;
}

interface WatchedThread {
  isRunaway: boolean;
  forget?: () => void;
}

/** Counts threads that were asked to end and have not ended. */
export class EndingThreads {
  readonly #late: LateThreads;
  readonly #watched = new Set<WatchedThread>();
  #closed = false;

  constructor(late: LateThreads = {}) {
    this.#late = late;
  }

  /** The number of threads that have not ended yet. */
  get count(): number {
    return this.#watched.size;
  }

  /** The number of runaways, loaded or not. */
  get runaways(): number {
    return [...this.#watched].filter(({ isRunaway }) => isRunaway).length;
  }

  /**
   * Watches a thread that the caller is about to end. Resolves when the caller may end it.
   * @param port A port to the thread. The thread need not read from it, and the caller may close it
   * afterwards.
   * @param what Names the thread for `onRunaway`.
   * @param timeoutMs The time after which the thread counts as a runaway, in ms.
   * @param hasLoaded Whether the thread has loaded, so that a function may run there.
   */
  async watch(
    port: MessagePort,
    what: string,
    timeoutMs: number,
    hasLoaded = true,
  ): Promise<void> {
    if (this.#closed) return;
    const watched: WatchedThread = { isRunaway: false };
    this.#watched.add(watched);
    // Node's module, because only its ports report that the other end is closed. Loaded lazily.
    const { MessageChannel } = await import("node:worker_threads");
    if (this.#closed) return;
    const { port1, port2 } = new MessageChannel();
    const timer = setTimeout(() => {
      watched.isRunaway = true;
      if (hasLoaded) this.#late.onRunaway?.(what);
      else this.#late.onNeverLoaded?.();
    }, timeoutMs);
    watched.forget = () => {
      clearTimeout(timer);
      port1.close();
    };
    port1.on("close", () => {
      clearTimeout(timer);
      this.#watched.delete(watched);
    });
    port1.on("message", () => {}); // without a listener it does not report that it is closed
    // When the thread ends, `port2` is closed with it, even if the thread has not read this message.
    port.postMessage(null, [port2 as unknown as MessagePort]);
  }

  /** Stops watching all threads. */
  close(): void {
    this.#closed = true;
    for (const { forget } of this.#watched) forget?.();
    this.#watched.clear();
  }
}
