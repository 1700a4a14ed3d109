/**
 * The stopwatch of one operator's calls: it times a sample of them, because reading the clock takes
 * longer than a short call.
 */
import type { Host } from "../host.ts";
import type { OperatorMeter } from "./stats.ts";

/** Of calls that take this long, one in the returned number is timed. */
function callsPerSample(tookMs: number): number {
  if (tookMs > 0.1) return 1;
  return tookMs > 0.01 ? 32 : 1024;
}

/** Counts calls, and times those that are due. A timed call stands for all calls up to the next timed one. */
export class Stopwatch {
  /** The number, from 0, of the next call to be timed. */
  dueAt = 0;
  readonly #host: Host;
  readonly #meter: OperatorMeter;
  /** How many calls the next timed one stands for. */
  #standsFor = 1;
  /** When the last timed call returned. */
  #lastAtMs = -Infinity;
  #calls = 0;

  constructor(host: Host, meter: OperatorMeter) {
    this.#host = host;
    this.#meter = meter;
  }

  /** Makes and counts the next call. For operators that make all their calls by this method. */
  time<T>(call: () => T): T {
    const number = this.#calls++;
    if (number < this.dueAt) return call();
    const startedAtMs = this.#host.nowMs();
    try {
      return call();
    } finally {
      this.note(startedAtMs, number);
    }
  }

  /** Notes that the call with this number has just returned. */
  note(startedAtMs: number, number: number): void {
    const endedAtMs = this.#host.nowMs();
    // For the shortest calls, reading the clock would dominate the time.
    const readingMs = this.#host.nowMs() - endedAtMs;
    const tookMs = Math.max(0, endedAtMs - startedAtMs - readingMs);
    // Calls cannot have taken longer than the time since the last timed one.
    this.#meter.spent(Math.min(tookMs * this.#standsFor, endedAtMs - this.#lastAtMs));
    this.#lastAtMs = endedAtMs;
    this.#standsFor = callsPerSample(tookMs);
    this.dueAt = number + this.#standsFor;
  }
}
