/**
 * Corrects the ratio while training runs, which the FastFlow paper leaves open (its section 9): it
 * looks at which side the training loop waits for, and moves elements to the other, with
 * hysteresis. A change that made training slower is undone. Pure: it sees windows of steps and
 * gives a ratio.
 */

/** Below this share of its time training does not wait for data: nothing is to be corrected. */
const WAITING_SHARE_MIN = 0.03;
/** The first change, and the range of changes, in log-odds of the ratio. */
const STEP_FIRST = 0.2;
const STEP_MIN = 0.04;
const STEP_MAX = 1;
/** Steps become larger while the direction stays the same, and smaller when it changes. */
const STEP_GROWTH = 1.5;
const STEP_SHRINKING = 0.5;
/** A change that costs more than this share of the throughput is undone. */
const LOSS_MAX = 0.01;
/** If throughput differs by more than this share, conditions have changed: a new search starts. */
const CHANGE_MIN = 0.08;
/** Windows until a ratio that was found is tried again; twice as many the next time. */
const PATIENCE_WINDOWS = 8;
const PATIENCE_WINDOWS_MAX = 16;
/** The ratio stays within these, so that both sides are measured. */
const RATIO_MIN = 0.01;
const RATIO_MAX = 0.99;

/** Some consecutive elements, all with one ratio. */
export interface StepWindow {
  readonly elements: number;
  readonly elapsedMs: number;
  /** How long the training loop waited for elements of each side. */
  readonly waitMs: { readonly local: number; readonly remote: number };
}

/** Searches for the ratio with which training waits least. */
export class RatioControl {
  #logOdds: number;
  #step = STEP_FIRST;
  #direction = 0;
  /** The ratio and the throughput before the last change. */
  #before: { readonly logOdds: number; readonly throughput: number } | undefined;
  /** The throughput with the ratio at which the search ended, and for how long it is kept. */
  #settled: { readonly throughput: number; windows: number } | undefined;
  #patience = PATIENCE_WINDOWS;
  #changes = 0;
  #undone = 0;

  constructor(ratio: number) {
    this.#logOdds = logOddsOf(Math.min(RATIO_MAX, Math.max(RATIO_MIN, ratio)));
  }

  get ratio(): number {
    return 1 / (1 + Math.exp(-this.#logOdds));
  }

  /** How often the ratio was changed, and how often a change was undone. */
  get counts(): { readonly changes: number; readonly undone: number } {
    return { changes: this.#changes, undone: this.#undone };
  }

  /** Takes in a window with the present ratio. True if the ratio is another one now. */
  observe({ elements, elapsedMs, waitMs }: StepWindow): boolean {
    const throughput = elements / elapsedMs;
    const waitingShare = (waitMs.local + waitMs.remote) / elapsedMs;
    if (this.#settled !== undefined && this.#staysSettled(this.#settled, throughput)) return false;
    if (waitingShare < WAITING_SHARE_MIN) {
      // The last change, if any, has removed the stall.
      this.#before = undefined;
      return false;
    }
    const direction = waitMs.local > waitMs.remote ? 1 : -1;
    const before = this.#before;
    if (before !== undefined && throughput < before.throughput * (1 - LOSS_MAX)) {
      return this.#undo(before);
    }
    if (this.#direction !== 0) {
      this.#step *= direction === this.#direction ? STEP_GROWTH : STEP_SHRINKING;
    }
    this.#direction = direction;
    if (this.#step < STEP_MIN) return this.#settle(throughput);
    this.#before = { logOdds: this.#logOdds, throughput };
    return this.#moveTo(this.#logOdds + direction * Math.min(this.#step, STEP_MAX));
  }

  #staysSettled(settled: { readonly throughput: number; windows: number }, now: number): boolean {
    const isSame = Math.abs(now / settled.throughput - 1) <= CHANGE_MIN;
    settled.windows++;
    if (isSame && settled.windows < this.#patience) return true;
    this.#patience = isSame ? Math.min(PATIENCE_WINDOWS_MAX, 2 * this.#patience) : PATIENCE_WINDOWS;
    this.#settled = undefined;
    this.#before = undefined;
    this.#direction = 0;
    this.#step = isSame ? 2 * STEP_MIN : STEP_FIRST;
    return false;
  }

  #undo(before: { readonly logOdds: number; readonly throughput: number }): boolean {
    this.#undone++;
    this.#before = undefined;
    this.#direction = 0;
    this.#step *= STEP_SHRINKING;
    this.#moveTo(before.logOdds);
    if (this.#step < STEP_MIN) this.#settle(before.throughput);
    return true;
  }

  #settle(throughput: number): false {
    this.#settled = { throughput, windows: 0 };
    this.#before = undefined;
    return false;
  }

  #moveTo(logOdds: number): boolean {
    const bound = logOddsOf(RATIO_MAX);
    const bounded = Math.min(bound, Math.max(-bound, logOdds));
    if (bounded === this.#logOdds) return false;
    this.#logOdds = bounded;
    this.#changes++;
    return true;
  }
}

function logOddsOf(ratio: number): number {
  return Math.log(ratio / (1 - ratio));
}
