/** Measures the throughput of answers from one source. */

/** Half-life of older measurements, in ms. */
const HALF_LIFE_MS = 2_000;
/** By how much the assumed shortest round trip may grow with each longer one. */
const ROUND_TRIP_GROWTH = 1.02;

/**
 * Adds up how long answers were in transit: from when the source had them until they arrived, less
 * an empty message's round trip. Overlapping answers count once.
 */
export class BandwidthMeter {
  #roundTripMs: number | undefined;
  #bytes = 0;
  #ms = 0;
  #lastMs = 0;

  /** An empty message came back after this many ms. */
  roundTrip(ms: number): void {
    this.#roundTripMs = Math.min(ms, ROUND_TRIP_GROWTH * (this.#roundTripMs ?? ms));
  }

  /** The round trip of an empty message on an idle network, in ms; undefined before the first. */
  get roundTripMs(): number | undefined {
    return this.#roundTripMs;
  }

  /** An answer has come. `onTheWayMs`: since its request, less the wait at its source. */
  came(nowMs: number, bytes: number, onTheWayMs: number): void {
    const kept = 0.5 ** ((nowMs - this.#lastMs) / HALF_LIFE_MS);
    const sendingMs = Math.max(0, onTheWayMs - (this.roundTripMs ?? 0));
    this.#bytes = this.#bytes * kept + bytes;
    this.#ms = this.#ms * kept + Math.min(sendingMs, nowMs - this.#lastMs);
    this.#lastMs = nowMs;
  }

  /** Bytes per second while answers are in transit; undefined before it is measured. */
  get bytesPerSecond(): number | undefined {
    if (this.#bytes === 0 || this.#roundTripMs === undefined) return undefined;
    // A transfer that takes no measurable time gets the highest rate that can be reported.
    return Math.min(1e12, 1_000 * this.#bytes / Math.max(this.#ms, Number.MIN_VALUE));
  }
}
