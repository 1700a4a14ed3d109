/** Waits for work that ends early when a thread or a source ends. */

/**
 * Races work against an end that may never come.
 *
 * `Promise.race` with one long-lived promise would keep every result until that promise settles;
 * this class keeps nothing of finished work.
 *
 * @example
 * ```ts
 * import { AbortRace } from "./abort_race.ts";
 *
 * const end = new AbortRace();
 * await end.before(Promise.resolve(1)); // 1
 * const never = end.before(new Promise(() => {}));
 * end.come(new Error("gone"));
 * await never.catch((error) => error.message); // "gone"
 * ```
 */
export class AbortRace {
  readonly #waiting = new Set<(error: Error) => void>();
  #error: Error | undefined;

  get hasCome(): boolean {
    return this.#error !== undefined;
  }

  /**
   * Resolves or rejects as the work does, or rejects with the error of the end, whichever is first.
   */
  before<T>(work: PromiseLike<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      // Even after the end, handle the work's own failure: it must not become an unhandled
      // rejection.
      work.then((value) => {
        this.#waiting.delete(reject);
        resolve(value);
      }, (error) => {
        this.#waiting.delete(reject);
        reject(error);
      });
      if (this.#error === undefined) this.#waiting.add(reject);
      else reject(this.#error);
    });
  }

  /** Ends all waiting work with `error`. Only the first call counts. */
  come(error: Error): void {
    if (this.#error !== undefined) return;
    this.#error = error;
    for (const reject of this.#waiting) reject(error);
    this.#waiting.clear();
  }
}
