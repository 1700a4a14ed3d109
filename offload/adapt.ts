/**
 * Corrects the ratio while training runs, which the FastFlow paper leaves open (its section 9): it
 * looks at which side the training loop waits for, and moves elements to the other. Where training
 * does not wait, workers get less, in the end nothing. Pure: it sees windows of steps and gives a
 * ratio.
 *
 * A window of some hundred ms is an inexact measurement. So which side is waited for is averaged,
 * and a step is large only if it was the same side for a while (stochastic approximation). Whether
 * more at the workers makes training slower is seen by regression over many windows.
 */
import { Trend } from "./trend.ts";

/** From this share of its time on, training waits for data, and a better ratio is searched for. */
const WAITING_SHARE_MIN = 0.03;
/** Below this share it does not wait, and less at the workers may be enough. */
const IDLE_SHARE_MAX = 0.01;
/** What this share of waiting while neither side could give more says of this host. */
const BUSY_SHARE = 0.2;
/** Waiting for one side less than this share of the time says little: a step is the smaller. */
const CLEAR_SHARE = 0.1;
/** A step, in log-odds of the ratio, has this length at least, and so much more at most. */
const STEP_MIN = 0.03;
const STEP_GAIN = 1;
/** A shorter one is not made. */
const STEP_IGNORED = 0.01;
/** The share of the newest window in the average of which side is waited for. */
const NEWEST_SHARE = 0.3;
/** Where training does not wait, workers get less in steps of this length, that become longer. */
const LESS_FIRST = 0.2;
const LESS_MAX = 1;
const LESS_GROWTH = 1.5;
/** A return to the workers that costs more than this share of the throughput is undone. */
const LOSS_MAX = 0.02;
/** If throughput differs by more than this share, conditions have changed. */
const CHANGE_MIN = 0.08;
/** Windows until something else is tried; twice as many the next time. */
const PATIENCE_WINDOWS = 8;
const PATIENCE_WINDOWS_MAX = 128;
/** Windows until a probe of fewer elements at the workers. */
const PROBE_WINDOWS = 32;
/** While less is enough, it is tried again after so many windows. */
const ENOUGH_WINDOWS = 2;
/** A smaller ratio is 0: all elements are prepared here, and the service is not used. */
const RATIO_MIN = 0.01;
const RATIO_MAX = 0.99;
/** The ratio with which offloading begins again. */
const RATIO_AGAIN = 0.03;
/** What is tried where training waits for this host though workers prepare all. */
const RATIO_PROBE = 0.7;

/** Some consecutive elements, all with one ratio. */
export interface StepWindow {
  readonly elements: number;
  readonly elapsedMs: number;
  /**
   * How long the training loop waited for elements of each side while the other could give more, and
   * how long while none could.
   */
  readonly waitMs: { readonly local: number; readonly remote: number; readonly both: number };
}

/** The last change, and what was before it. */
interface Move {
  /** `less`: training does not wait. `again`: from 0. */
  readonly kind: "balance" | "less" | "again";
  readonly fromRatio: number;
  readonly throughput: number;
}

/** Searches for the ratio with which training waits least. */
export class RatioControl {
  #ratio: number;
  /** Which side was waited for: from -1, always workers, to 1, always this host. */
  #leaning = 0;
  /** Throughput by ratio, since training has waited for this host. */
  #trend = new Trend();
  /** The same since it does not wait. */
  #idleTrend = new Trend();
  #probePatience = PROBE_WINDOWS;
  #move: Move | undefined;
  /** The throughput without workers when training began to wait. */
  #alone: number | undefined;
  #lessStep = LESS_FIRST;
  /** Whether the last try showed that less is enough. */
  #isEnough = false;
  /** The ratio with which it was not, and the throughput before: no more is tried seldom. */
  #tooLittle = { ratio: 0, throughput: 0 };
  #tryPatience = PATIENCE_WINDOWS;
  /** Windows since the last change. */
  #windows = 0;

  constructor(ratio: number) {
    this.#ratio = bounded(ratio);
  }

  /** The share of remote elements; 0: the service is not used. */
  get ratio(): number {
    return this.#ratio;
  }

  /** Takes in a window with the present ratio. True if the ratio is another one now. */
  observe({ elements, elapsedMs, waitMs: { local, remote, both } }: StepWindow): boolean {
    const throughput = elements / elapsedMs;
    const waitedMs = local + remote + both;
    const last = this.#move;
    this.#windows++;
    if (waitedMs < IDLE_SHARE_MAX * elapsedMs) return this.#offloadLess(last, throughput);
    this.#move = undefined;
    this.#idleTrend = new Trend();
    if (last?.kind === "less" && local + both > remote) return this.#undo(last);
    if (waitedMs < WAITING_SHARE_MIN * elapsedMs) return false;
    const isWorse = last?.kind === "again" && throughput < last.throughput * (1 - LOSS_MAX);
    if (isWorse) return this.#undo(last);
    if (this.#ratio === 0) return this.#offloadAgain(throughput);
    // A host that always works is a bottleneck, whether workers could give more or not.
    const here = local + BUSY_SHARE * both;
    const clearMs = Math.max(here + remote, CLEAR_SHARE * elapsedMs);
    return this.#balance((here - remote) / clearMs, throughput);
  }

  /** More for the side that training waits less for. */
  #balance(waited: number, throughput: number): boolean {
    if (waited > 0) this.#trend.add(this.#ratio, Math.log(throughput));
    else this.#trend = new Trend();
    // More at the workers made training slower, though it waits for this host: receiving is dear.
    const direction = waited > 0 && this.#trend.direction < 0 ? -waited : waited;
    if (direction * this.#leaning < 0) this.#leaning /= 2;
    this.#leaning += NEWEST_SHARE * (direction - this.#leaning);
    if (this.#ratio === RATIO_MAX && direction > 0) return this.#probe(throughput);
    const step = direction * (STEP_MIN + STEP_GAIN * this.#leaning ** 4);
    if (Math.abs(step) < STEP_IGNORED) return false;
    return this.#moveTo(moved(this.#ratio, step), "balance", throughput);
  }

  /** Workers prepare all, and training waits for this host: perhaps because receiving is dear. */
  #probe(throughput: number): boolean {
    if (this.#windows < this.#probePatience) return false;
    this.#probePatience = longer(this.#probePatience);
    return this.#moveTo(RATIO_PROBE, "balance", throughput);
  }

  /** Training does not wait: tries from time to time whether less at the workers is enough. */
  #offloadLess(move: Move | undefined, throughput: number): boolean {
    const { ratio: tooLittle, throughput: before } = this.#tooLittle;
    this.#idleTrend.add(this.#ratio, Math.log(throughput));
    // Steps take longer while this host prepares more: they share its CPUs.
    if (this.#ratio < RATIO_MAX && this.#idleTrend.direction > 0) {
      const fromRatio = bounded(moved(Math.max(RATIO_AGAIN, this.#ratio), LESS_FIRST));
      return this.#undo({ kind: "less", fromRatio, throughput });
    }
    // What is ready hides for a while that less is too little.
    if (move?.kind === "less" && this.#windows === ENOUGH_WINDOWS) {
      this.#lessStep = Math.min(LESS_MAX, LESS_GROWTH * this.#lessStep);
      this.#isEnough = true;
    }
    const isOther = tooLittle > 0 && Math.abs(throughput / before - 1) > CHANGE_MIN;
    if (isOther || this.#ratio <= tooLittle) {
      this.#tooLittle = { ratio: 0, throughput: 0 };
      this.#tryPatience = PATIENCE_WINDOWS;
    }
    const next = moved(this.#ratio, -this.#lessStep);
    const isNew = this.#isEnough && next > this.#tooLittle.ratio;
    if (this.#ratio === 0 || this.#windows < (isNew ? ENOUGH_WINDOWS : this.#tryPatience)) {
      return false;
    }
    return this.#moveTo(isNew ? next : moved(this.#ratio, -LESS_FIRST), "less", throughput);
  }

  /** All is prepared here, and training waits: tries the workers from time to time. */
  #offloadAgain(throughput: number): boolean {
    const before = this.#alone ??= throughput;
    const isSame = Math.abs(throughput / before - 1) <= CHANGE_MIN;
    if (isSame && this.#windows < this.#tryPatience) return false;
    this.#alone = undefined;
    this.#leaning = 0;
    this.#trend = new Trend();
    return this.#moveTo(RATIO_AGAIN, "again", throughput);
  }

  #undo({ kind, fromRatio, throughput }: Move): true {
    if (kind === "less") this.#tooLittle = { ratio: this.#ratio, throughput };
    this.#isEnough = false;
    this.#lessStep = LESS_FIRST;
    this.#tryPatience = longer(this.#tryPatience);
    this.#change(fromRatio);
    return true;
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
  }
}

/** The ratio after a step in log-odds. */
function moved(ratio: number, step: number): number {
  return 1 / (1 + (1 - ratio) / ratio * Math.exp(-step));
}

function bounded(ratio: number): number {
  return ratio < RATIO_MIN ? 0 : Math.min(RATIO_MAX, ratio);
}

function longer(windows: number): number {
  return Math.min(PATIENCE_WINDOWS_MAX, 2 * windows);
}
