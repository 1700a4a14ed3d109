/**
 * Measures how much other programs slow this process down: it repeats a fixed piece of work, which
 * takes longer while they run.
 */
import { percentile } from "../lib/statistics.ts";

/**
 * The time of a piece of work, in ms: short compared to a batch, long compared to reading the
 * clock.
 */
const PIECE_MS = 1;
/** The first pieces are slow: their code is being compiled. */
const WARM_UP_MS = 20;

/** Repeats a fixed piece of work, and measures its time. */
export class Yardstick {
  readonly #steps: number;
  readonly #timesMs: number[] = [];

  constructor() {
    let steps = 1_000;
    for (const startMs = performance.now(); performance.now() - startMs < WARM_UP_MS;) {
      const tookMs = timed(steps);
      if (tookMs < PIECE_MS) steps = Math.ceil(steps * 1.5);
    }
    this.#steps = steps;
  }

  /** The total time of all pieces, in ms. */
  get totalMs(): number {
    return this.#timesMs.reduce((sum, ms) => sum + ms, 0);
  }

  /** Does one piece of work, and records its time. */
  measure(): void {
    this.#timesMs.push(timed(this.#steps));
  }

  /** The factor by which work was slowed down on average: 1 on a free host. */
  get contention(): number {
    if (this.#timesMs.length === 0) return 1;
    const undisturbedMs = percentile(this.#timesMs, 0.1);
    return Math.max(1, this.totalMs / (this.#timesMs.length * undisturbedMs));
  }
}

function timed(steps: number): number {
  const startMs = performance.now();
  work(steps);
  return performance.now() - startMs;
}

/** Does a piece of work. The result depends on every step, so that none can be optimized away. */
function work(steps: number): number {
  let value = 1;
  for (let i = 0; i < steps; i++) value = Math.imul(value ^ i, 0x9e3779b1);
  return value;
}
