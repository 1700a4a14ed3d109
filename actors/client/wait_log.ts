/** Decides when to log what a client waits for: after some seconds, then once a minute. */

/** The first log line comes after this time, in ms, as a worker may take so long to start. */
const FIRST_AFTER_MS = 5_000;
const AGAIN_AFTER_MS = 60_000;

export class WaitLog {
  /** When to log next; undefined while nothing is waited for. */
  #dueMs: number | undefined;

  /**
   * What to log now, if anything.
   * @param waitingFor What the client waits for; undefined if it waits for nothing.
   */
  due(waitingFor: string | undefined, nowMs: number): string | undefined {
    if (waitingFor === undefined) {
      this.#dueMs = undefined;
      return undefined;
    }
    this.#dueMs ??= nowMs + FIRST_AFTER_MS;
    if (nowMs < this.#dueMs) return undefined;
    this.#dueMs = nowMs + AGAIN_AFTER_MS;
    return waitingFor;
  }
}
