/**
 * The end of something that others wait on: a thread, a source.
 *
 * @module
 */

/**
 * Lets work be waited for until an end comes, which may be never.
 *
 * `Promise.race` with a promise that stands for the end would keep every result until that promise
 * settles; here nothing is left of work that is done.
 *
 * @example
 * ```ts
 * import { Ending } from "./ending.ts";
 *
 * const ending = new Ending();
 * await ending.before(Promise.resolve(1)); // 1
 * const never = ending.before(new Promise(() => {}));
 * ending.come(new Error("gone"));
 * await never.catch((error) => error.message); // "gone"
 * ```
 */
export class Ending {
  readonly #waiting = new Set<(error: Error) => void>();
  #error: Error | undefined;

  /** Whether the end has come. */
  get hasCome(): boolean {
    return this.#error !== undefined;
  }

  /** What the work comes to, or a rejection with the error of the end, whichever is first. */
  before<T>(work: PromiseLike<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      // Also where the end has come: the work's own failure is not to go unhandled.
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

  /** The end is here. Only the first one counts. */
  come(error: Error): void {
    if (this.#error !== undefined) return;
    this.#error = error;
    for (const reject of this.#waiting) reject(error);
    this.#waiting.clear();
  }
}
