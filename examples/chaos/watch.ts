/**
 * What is seen of a cluster while processes are killed: who has worked, and what the reader holds.
 *
 * @module
 */
import type { Deployment } from "../cluster/deployment.ts";
import { Observer } from "../cluster/observer.ts";

/** How often it looks, in ms. */
const OBSERVE_MS = 100;

/** See the module. */
export class Watch implements Disposable {
  /** By worker, what it was seen to hand out, in answers: of a life that ends, the last is missed. */
  readonly served = new Map<string, number>();
  /** The most that a reader says it has ever held. */
  bufferedBytesMax = 0;
  openSplitsMax = 0;
  readonly #observer: Observer;
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #last = new Map<string, number>();

  constructor({ dispatcher, token }: Deployment) {
    this.#observer = new Observer(dispatcher.address, token);
    this.#timer = setInterval(() => this.#look(), OBSERVE_MS);
  }

  async #look(): Promise<void> {
    await this.#observer.refresh();
    const { workers, description } = this.#observer;
    for (const [name, { served }] of workers) {
      const last = this.#last.get(name) ?? 0;
      // Fewer than before: tasks of another life, or of the next run.
      const more = served < last ? served : served - last;
      this.#last.set(name, served);
      this.served.set(name, (this.served.get(name) ?? 0) + more);
    }
    for (const { iterations } of description?.jobs ?? []) {
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
