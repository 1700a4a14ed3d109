/**
 * What is seen of a cluster while processes are killed: who has worked, and what the reader holds.
 *
 * @module
 */
import type { Deployment } from "../cluster/deployment.ts";
import { Observer } from "../cluster/observer.ts";

/** How often it looks, in ms. */
const OBSERVE_MS = 250;

/** See the module. */
export class Watch implements Disposable {
  readonly #observer: Observer;
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #worked = new Set<string>();
  bufferedBytesMax = 0;

  constructor({ dispatcher, token }: Deployment) {
    this.#observer = new Observer(dispatcher.address, token);
    this.#timer = setInterval(() => this.#look(), OBSERVE_MS);
  }

  /** The workers that were never seen to have produced anything. */
  get idle(): string[] {
    return [...this.#observer.workers.keys()].filter((name) => !this.#worked.has(name));
  }

  async #look(): Promise<void> {
    await this.#observer.refresh();
    const { workers, description } = this.#observer;
    for (const [name, { served }] of workers) if (served > 0) this.#worked.add(name);
    for (const { iterations } of description?.jobs ?? []) {
      for (const { figures } of iterations.flatMap(({ readers }) => readers)) {
        this.bufferedBytesMax = Math.max(this.bufferedBytesMax, figures?.bufferedBytes ?? 0);
      }
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#observer[Symbol.dispose]();
  }
}
