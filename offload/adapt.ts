/**
 * Corrects the ratio while training runs, which the FastFlow paper leaves open (its section 9): it
 * looks at which side the training loop waits for, and moves elements to the other, with
 * hysteresis. A change that made training slower is undone. Where training does not wait, workers
 * get less, in the end nothing. Pure: it sees windows of steps and gives a ratio.
 */

/** From this share of its time on, training waits for data, and a better ratio is searched for. */
const WAITING_SHARE_MIN = 0.03;
/** Below this share it does not wait, and less at the workers may be enough. */
const IDLE_SHARE_MAX = 0.01;
/** The first change, and the range of changes, in log-odds of the ratio. */
const STEP_FIRST = 0.2;
const STEP_MIN = 0.04;
const STEP_MAX = 1;
/** Steps become larger while the direction stays the same, and smaller when it changes. */
const STEP_GROWTH = 1.5;
const STEP_SHRINKING = 0.5;
/** A change that costs more than this share of the throughput is undone. */
const LOSS_MAX = 0.01;
/** The same while training still waits for the same side: a smaller loss may be an inexact measurement. */
const LOSS_MAX_ON = 0.05;
/** If throughput differs by more than this share, conditions have changed: a new search starts. */
const CHANGE_MIN = 0.08;
/** Windows until a ratio that was found is tried again; twice as many the next time. */
const PATIENCE_WINDOWS = 8;
const PATIENCE_WINDOWS_MAX = 16;
/** The same for offloading less where training does not wait, and for offloading again. */
const TRY_WINDOWS_MAX = 128;
/** While less is enough, it is tried again after so many windows. */
const TRY_WINDOWS_MIN = 2;
/** A smaller ratio is 0: all elements are prepared here, and the service is not used. */
const RATIO_MIN = 0.01;
const RATIO_MAX = 0.99;
/** The ratio with which offloading begins again. */
const RATIO_AGAIN = 0.03;

/** Some consecutive elements, all with one ratio. */
export interface StepWindow {
  readonly elements: number;
  readonly elapsedMs: number;
  /** How long the training loop waited for elements of each side. */
  readonly waitMs: { readonly local: number; readonly remote: number };
}

/** The last change, and what was before it. */
interface Move {
  /** `less`: training does not wait. `again`: from 0. */
  readonly kind: "climb" | "less" | "again";
  readonly fromRatio: number;
  readonly throughput: number;
}

/** Searches for the ratio with which training waits least. */
export class RatioControl {
  #ratio: number;
  #step = STEP_FIRST;
  #direction = 0;
  /** More at the workers made training slower, though it waits for this host: receiving is dear. */
  #isDear = false;
  #move: Move | undefined;
  /** The throughput at which the search ended, and for how long it is kept. */
  #settled: { readonly throughput: number; windows: number } | undefined;
  #patience = PATIENCE_WINDOWS;
  #lessStep = STEP_FIRST;
  /** Whether the last try showed that less is enough. */
  #isEnough = false;
  /** The ratio with which it was not, and the throughput before: no more is tried seldom. */
  #tooLittle = { ratio: 0, throughput: 0 };
  #tryPatience = PATIENCE_WINDOWS;
  /** Windows since the last change. */
  #windows = 0;
  #changes = 0;
  #undone = 0;

  constructor(ratio: number) {
    this.#ratio = bounded(ratio);
  }

  /** The share of remote elements; 0: the service is not used. */
  get ratio(): number {
    return this.#ratio;
  }

  /** How often the ratio was changed, and how often a change was undone. */
  get counts(): { readonly changes: number; readonly undone: number } {
    return { changes: this.#changes, undone: this.#undone };
  }

  /** Takes in a window with the present ratio. True if the ratio is another one now. */
  observe({ elements, elapsedMs, waitMs }: StepWindow): boolean {
    const throughput = elements / elapsedMs;
    const waiting = (waitMs.local + waitMs.remote) / elapsedMs;
    const hint = waitMs.local > waitMs.remote ? 1 : -1;
    const last = this.#move;
    this.#windows++;
    if (waiting < IDLE_SHARE_MAX) return this.#offloadLess(last, throughput);
    this.#move = undefined;
    const isLess = last?.kind === "less";
    if (isLess && hint > 0) return this.#undo(last, hint);
    if (waiting < WAITING_SHARE_MIN) return false;
    const move = isLess ? undefined : last;
    const isOn = move?.kind === "climb" && !this.#isDear && hint === this.#direction;
    const lossMax = isOn && this.#ratio < RATIO_MAX ? LOSS_MAX_ON : LOSS_MAX;
    if (move !== undefined && throughput < move.throughput * (1 - lossMax)) {
      return this.#undo(move, hint);
    }
    if (this.#ratio === 0) return this.#offloadAgain(throughput);
    if (this.#settled !== undefined && this.#staysSettled(this.#settled, throughput)) return false;
    const reference = isOn ? Math.max(throughput, move.throughput) : throughput;
    return this.#climb(this.#isDear ? -1 : hint, reference);
  }

  /** More for the side that training waits less for. */
  #climb(direction: number, throughput: number): boolean {
    if (this.#direction !== 0) {
      this.#step *= direction === this.#direction ? STEP_GROWTH : STEP_SHRINKING;
      this.#step = Math.min(STEP_MAX, this.#step);
    }
    this.#direction = direction;
    if (this.#step < STEP_MIN) return this.#settle(throughput);
    const ratio = moved(this.#ratio, direction * this.#step);
    return this.#moveTo(ratio, "climb", throughput);
  }

  /** Training does not wait: tries from time to time whether less at the workers is enough. */
  #offloadLess(move: Move | undefined, throughput: number): boolean {
    this.#settled = undefined;
    const { ratio: tooLittle, throughput: before } = this.#tooLittle;
    // What is ready hides for a while that less is too little.
    if (move?.kind === "less" && this.#windows === TRY_WINDOWS_MIN) {
      this.#lessStep = Math.min(STEP_MAX, STEP_GROWTH * this.#lessStep);
      this.#isEnough = true;
    }
    const isOther = tooLittle > 0 && Math.abs(throughput / before - 1) > CHANGE_MIN;
    if (isOther || this.#ratio <= tooLittle) {
      this.#tooLittle = { ratio: 0, throughput: 0 };
      this.#tryPatience = PATIENCE_WINDOWS;
    }
    const next = moved(this.#ratio, -this.#lessStep);
    const isNew = this.#isEnough && next > this.#tooLittle.ratio;
    if (this.#ratio === 0 || this.#windows < (isNew ? TRY_WINDOWS_MIN : this.#tryPatience)) {
      return false;
    }
    const ratio = isNew ? next : moved(this.#ratio, -STEP_FIRST);
    return this.#moveTo(ratio, "less", throughput);
  }

  /** All is prepared here, and training waits: tries the workers from time to time. */
  #offloadAgain(throughput: number): boolean {
    const { throughput: before } = this.#settled ??= { throughput, windows: 0 };
    const isSame = Math.abs(throughput / before - 1) <= CHANGE_MIN;
    if (isSame && this.#windows < this.#tryPatience) return false;
    this.#startSearch(STEP_FIRST);
    return this.#moveTo(RATIO_AGAIN, "again", throughput);
  }

  #staysSettled(settled: { readonly throughput: number; windows: number }, now: number): boolean {
    const isSame = Math.abs(now / settled.throughput - 1) <= CHANGE_MIN;
    settled.windows++;
    if (isSame && settled.windows < this.#patience) return true;
    this.#patience = isSame ? Math.min(PATIENCE_WINDOWS_MAX, 2 * this.#patience) : PATIENCE_WINDOWS;
    if (!isSame) this.#tryPatience = PATIENCE_WINDOWS;
    this.#startSearch(isSame ? STEP_MIN : STEP_FIRST);
    return false;
  }

  #startSearch(step: number): void {
    this.#settled = undefined;
    this.#direction = 0;
    this.#isDear = false;
    this.#step = step;
  }

  #undo({ kind, fromRatio, throughput }: Move, hint: number): true {
    this.#undone++;
    if (kind === "climb") {
      this.#isDear = fromRatio < this.#ratio && hint > 0;
      this.#direction = 0;
      this.#step *= STEP_SHRINKING;
    } else {
      if (kind === "less") this.#tooLittle = { ratio: this.#ratio, throughput };
      this.#isEnough = false;
      this.#tryPatience = Math.min(
        TRY_WINDOWS_MAX,
        2 * Math.max(PATIENCE_WINDOWS, this.#tryPatience),
      );
      this.#lessStep = STEP_FIRST;
    }
    this.#change(fromRatio);
    if (kind === "climb" ? this.#step < STEP_MIN : fromRatio === 0) this.#settle(throughput);
    return true;
  }

  #settle(throughput: number): false {
    this.#settled = { throughput, windows: 0 };
    return false;
  }

  #moveTo(ratio: number, kind: Move["kind"], throughput: number): boolean {
    const fromRatio = this.#ratio;
    const wanted = bounded(ratio);
    if (wanted === fromRatio) return false;
    this.#move = { kind, fromRatio, throughput };
    this.#change(wanted);
    return true;
  }

  #change(ratio: number): void {
    this.#ratio = ratio;
    this.#windows = 0;
    this.#changes++;
  }
}

/** The ratio after a step in log-odds. */
function moved(ratio: number, step: number): number {
  return 1 / (1 + (1 - ratio) / ratio * Math.exp(-step));
}

function bounded(ratio: number): number {
  return ratio < RATIO_MIN ? 0 : Math.min(RATIO_MAX, ratio);
}
