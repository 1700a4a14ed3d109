/**
 * What a client waits for, said once it has waited for a while, and seldom after that.
 *
 * @module
 */

/** Workers that start together with their trainer take so long, in ms. */
const FIRST_AFTER_MS = 5_000;
const AGAIN_AFTER_MS = 60_000;

/** See the module. */
export class WaitLog {
  /** When something is to be said; undefined while nothing is waited for. */
  #dueMs: number | undefined;

  /** What there is to say now, if there is something. */
  heard(unserved: string | undefined, nowMs: number): string | undefined {
    if (unserved === undefined) {
      this.#dueMs = undefined;
      return undefined;
    }
    this.#dueMs ??= nowMs + FIRST_AFTER_MS;
    if (nowMs < this.#dueMs) return undefined;
    this.#dueMs = nowMs + AGAIN_AFTER_MS;
    return unserved;
  }
}
