/**
 * How much of the processor other programs take: a fixed piece of work, done again and again, takes
 * longer when they do.
 *
 * @module
 */
import { percentile } from "./percentile.ts";

/** How long a piece of work is to take, in ms: short beside a batch, long beside reading the clock. */
const PIECE_MS = 1;
/** The first pieces are slow: their code is being compiled. */
const WARM_UP_MS = 20;

/** See the module. */
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

  /** What all pieces took together, in ms. */
  get totalMs(): number {
    return this.#timesMs.reduce((sum, ms) => sum + ms, 0);
  }

  /** Does a piece of work now. */
  measure(): void {
    this.#timesMs.push(timed(this.#steps));
  }

  /** How many times longer than undisturbed work took here on average: 1 on a host that is free. */
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

/** Its answer depends on every step, so that none can be left out. */
function work(steps: number): number {
  let value = 1;
  for (let i = 0; i < steps; i++) value = Math.imul(value ^ i, 0x9e3779b1);
  return value;
}
