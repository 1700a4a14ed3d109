/**
 * How fast answers come over from one source.
 *
 * @module
 */

/** What is older than this counts half, and half of that after as long again, in ms. */
const HALF_LIFE_MS = 2_000;
/** How much longer than the shortest one a way's round trip may be thought with each that is. */
const ROUND_TRIP_GROWTH = 1.02;

/**
 * Adds up how long answers were on their way: from when the source had them until they were here,
 * less what an empty message takes. Where answers overlap the time counts once.
 */
export class WayMeter {
  #roundTripMs: number | undefined;
  #bytes = 0;
  #ms = 0;
  #lastMs = 0;

  /** A message that says little has come back after so many ms. */
  roundTrip(ms: number): void {
    this.#roundTripMs = Math.min(ms, ROUND_TRIP_GROWTH * (this.#roundTripMs ?? ms));
  }

  /** What a message takes there and back when nothing is on the way, in ms; undefined before the first. */
  get roundTripMs(): number | undefined {
    return this.#roundTripMs;
  }

  /**
   * An answer has come.
   *
   * @param onTheWayMs The time since it was asked for, less what it has waited at its source.
   */
  came(nowMs: number, bytes: number, onTheWayMs: number): void {
    const kept = 0.5 ** ((nowMs - this.#lastMs) / HALF_LIFE_MS);
    const sendingMs = Math.max(0, onTheWayMs - (this.roundTripMs ?? 0));
    this.#bytes = this.#bytes * kept + bytes;
    this.#ms = this.#ms * kept + Math.min(sendingMs, nowMs - this.#lastMs);
    this.#lastMs = nowMs;
  }

  /** Bytes per second while there are any; undefined before it can be known. */
  get bytesPerSecond(): number | undefined {
    if (this.#bytes === 0 || this.#roundTripMs === undefined) return undefined;
    // What takes no time at all is as fast as anything can be told to be.
    return Math.min(1e12, 1_000 * this.#bytes / Math.max(this.#ms, Number.MIN_VALUE));
  }
}
