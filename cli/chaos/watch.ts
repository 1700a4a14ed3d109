/**
 * Observes a cluster under faults: which workers served, which are alive, and what the readers of
 * DETERMINISTIC jobs hold.
 */
import type { Deployment } from "../cluster/deployment.ts";
import { Observer } from "../cluster/observer.ts";

/** How often the cluster is observed, in ms. */
const OBSERVE_MS = 100;

/** Observes a cluster. */
export class Watch implements Disposable {
  /** Elements that each worker was seen to serve. The last ones before a kill are missed. */
  readonly served = new Map<string, number>();
  /** The greatest number of bytes that a reader reported to hold. */
  bufferedBytesMax = 0;
  openSplitsMax = 0;
  readonly #observer: Observer;
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #last = new Map<string, number>();
  #looking: Promise<void> | undefined;

  constructor({ dispatcher, token }: Deployment) {
    this.#observer = new Observer(dispatcher.address, token);
    this.#timer = setInterval(() => this.#lookOnce(), OBSERVE_MS);
  }

  /**
   * Waits at most `timeoutMs` until the dispatcher reports this many live workers. Returns whether
   * it does.
   */
  async workersLive(count: number, timeoutMs: number): Promise<boolean> {
    const untilMs = performance.now() + timeoutMs;
    for (;;) {
      await this.#lookOnce();
      const workers = this.#observer.description?.workers ?? [];
      if (workers.filter(({ alive }) => alive).length >= count) return true;
      if (performance.now() > untilMs) return false;
      await new Promise((resolve) => setTimeout(resolve, OBSERVE_MS));
    }
  }

  /** Observes once. While a paused process blocks an observation, no second one begins. */
  #lookOnce(): Promise<void> {
    return this.#looking ??= this.#look().finally(() => this.#looking = undefined);
  }

  async #look(): Promise<void> {
    await this.#observer.refresh();
    const { workers, description } = this.#observer;
    for (const [name, { served }] of workers) {
      const last = this.#last.get(name) ?? 0;
      // Fewer than before: these are tasks of a restarted worker, or of the next run.
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
