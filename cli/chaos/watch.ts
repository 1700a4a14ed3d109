/**
 * Observes a cluster under faults: what each worker has served, which workers are live, and how much
 * the readers of DETERMINISTIC jobs buffer.
 */
import type { Deployment } from "../cluster/deployment.ts";
import { Observer } from "../cluster/observer.ts";

/** How often the cluster is observed, in ms. */
const OBSERVE_MS = 100;

/** Observes a cluster periodically. */
export class Watch implements Disposable {
  /** How many elements each worker was observed to serve, without the last ones before a kill. */
  readonly served = new Map<string, number>();
  /** The largest number of buffered bytes that a reader has reported. */
  bufferedBytesMax = 0;
  /** The largest number of open splits that a reader has reported. */
  openSplitsMax = 0;
  readonly #observer: Observer;
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #last = new Map<string, number>();
  #observing: Promise<void> | undefined;

  constructor({ dispatcher, token }: Deployment) {
    this.#observer = new Observer(dispatcher.address, token);
    this.#timer = setInterval(() => this.#observeOnce(), OBSERVE_MS);
  }

  /**
   * Waits at most `timeoutMs` until the dispatcher reports this many live workers. Returns whether it
   * has reported them.
   */
  async workersLive(count: number, timeoutMs: number): Promise<boolean> {
    const untilMs = performance.now() + timeoutMs;
    for (;;) {
      await this.#observeOnce();
      const workers = this.#observer.description?.workers ?? [];
      if (workers.filter(({ alive }) => alive).length >= count) return true;
      if (performance.now() > untilMs) return false;
      await new Promise((resolve) => setTimeout(resolve, OBSERVE_MS));
    }
  }

  /** Observes once. No second observation begins while a paused process blocks the first. */
  #observeOnce(): Promise<void> {
    return this.#observing ??= this.#observe().finally(() => this.#observing = undefined);
  }

  async #observe(): Promise<void> {
    await this.#observer.refresh();
    const { workers, description } = this.#observer;
    for (const [name, { served }] of workers) {
      const last = this.#last.get(name) ?? 0;
      // If the count fell, it is that of a restarted worker or of the next run.
      const more = served < last ? served : served - last;
      this.#last.set(name, served);
      this.served.set(name, (this.served.get(name) ?? 0) + more);
    }
    const jobs = (description?.jobs ?? [])
      .filter(({ parameters }) => parameters.processingMode === "DETERMINISTIC");
    for (const { iterations } of jobs) {
      for (const { figures } of iterations.flatMap(({ readers }) => readers)) {
        const { bufferedBytesMax = 0, openSplitsMax = 0 } = figures ?? {};
        this.bufferedBytesMax = Math.max(this.bufferedBytesMax, bufferedBytesMax);
        this.openSplitsMax = Math.max(this.openSplitsMax, openSplitsMax);
      }
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#observer[Symbol.dispose]();
  }
}
