/**
 * How fast answers come over from one source.
 *
 * @module
 */

/** What is older than this counts half, and half of that after as long again, in ms. */
const HALF_LIFE_MS = 2_000;
/** Round trips remembered; the shortest of them is that of the way when nothing is on it. */
const ROUND_TRIPS_KEPT = 4;

/**
 * Adds up how long answers were on their way: from when the source had them until they were here,
 * less what an empty message takes. Where answers overlap the time counts once.
 */
export class WayMeter {
  #roundTrips: number[] = [];
  #bytes = 0;
  #ms = 0;
  #lastMs = 0;

  /** A message that says little has come back after so many ms. */
  roundTrip(ms: number): void {
    this.#roundTrips = [...this.#roundTrips, ms].slice(-ROUND_TRIPS_KEPT);
  }

  /** The shortest of the newest round trips, in ms; undefined before the first. */
  get roundTripMs(): number | undefined {
    return this.#roundTrips.length === 0 ? undefined : Math.min(...this.#roundTrips);
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
    if (this.#bytes === 0 || this.#roundTrips.length === 0) return undefined;
    // What takes no time at all is as fast as anything can be told to be.
    return Math.min(1e12, 1_000 * this.#bytes / Math.max(this.#ms, Number.MIN_VALUE));
  }
}
