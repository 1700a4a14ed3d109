/**
 * Races promises against one abort that may never happen, such as the end of a thread or a source.
 *
 * `Promise.race` with one long-lived promise would keep every result in memory until that promise
 * settles. This class keeps nothing of finished work.
 *
 * @example
 * ```ts
 * import { AbortRace } from "./abort_race.ts";
 *
 * const end = new AbortRace();
 * await end.race(Promise.resolve(1)); // 1
 * const never = end.race(new Promise(() => {}));
 * end.abort(new Error("gone"));
 * await never.catch((error) => error.message); // "gone"
 * ```
 */
export class AbortRace {
  readonly #waiting = new Set<(error: Error) => void>();
  #error: Error | undefined;

  get isAborted(): boolean {
    return this.#error !== undefined;
  }

  /** Settles as `work` does, or rejects with the error given to `abort()`, whichever is first. */
  race<T>(work: PromiseLike<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      // After `abort()`, too: otherwise a failure of `work` would be an unhandled rejection.
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

  /** Rejects all pending and later `race()` with `error`. Only the first call counts. */
  abort(error: Error): void {
    if (this.#error !== undefined) return;
    this.#error = error;
    for (const reject of this.#waiting) reject(error);
    this.#waiting.clear();
  }
}
