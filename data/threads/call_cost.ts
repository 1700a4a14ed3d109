/** Whether calls of a function are so long that other threads should make them. */
import { byteSize } from "../../core/tree.ts";

/** How many calls one after the other are timed. The median counts: a busy machine delays some. */
const SAMPLES = 9;
/** So many series one after the other must be long: the engine compiles a function only after some calls. */
const LONG_SERIES = 3;
/** Calls between two series of timed ones; it doubles… */
const PAUSE_FIRST = 8;
/** …up to this. */
const PAUSE_MAX = 1_024;
/** Shorter calls are made here: see ADR 21. */
const CALL_MS_MIN = 0.02;
/** What this thread spends on sending a million bytes, with a margin, in ms. */
const MS_PER_MEGABYTE = 1;
/** An operator that has worked so long is worth starting threads for, in ms. */
const COLD_WORK_MS = 200;

/** Times series of calls that are made here. */
export class CallCost {
  /** Calls until the next series. The first call is left out: it also loads the function. */
  #until = 1;
  #pause = PAUSE_FIRST;
  readonly #samples: number[] = [];
  #workedMs = 0;
  /** The newest series that were long, one after the other. */
  #longSeries = 0;
  #callMs = 0;

  /** The median of the last series, in ms. */
  get callMs(): number {
    return this.#callMs;
  }

  /** Counts a call that is about to be made, and says whether to time it. */
  begins(): boolean {
    if (this.#longSeries > 0 || this.#until <= 0) return true;
    this.#until--;
    return false;
  }

  /** Notes a timed call. A promise counts as no time: calls overlap on one thread while they wait. */
  note(tookMs: number, element: unknown, result: unknown): void {
    const workedMs = result instanceof Promise ? 0 : tookMs;
    this.#workedMs += workedMs;
    this.#samples.push(workedMs);
    if (this.#samples.length < SAMPLES) return;
    this.#callMs = this.#samples.sort((a, b) => a - b)[SAMPLES >> 1]!;
    this.#samples.length = 0;
    if (this.#callMs >= CALL_MS_MIN + MS_PER_MEGABYTE * sizeOf(element) / 1e6) {
      this.#longSeries++;
      return;
    }
    this.#longSeries = 0;
    this.#until = this.#pause;
    this.#pause = Math.min(2 * this.#pause, PAUSE_MAX);
  }

  /** Whether other threads should make the next calls. `isWarm`: they run already. */
  pays(isWarm: boolean): boolean {
    return this.#longSeries >= LONG_SERIES && (isWarm || this.#workedMs >= COLD_WORK_MS);
  }
}

function sizeOf(element: unknown): number {
  try {
    return byteSize(element);
  } catch {
    return 0; // it cannot be sent, which is found out later
  }
}
