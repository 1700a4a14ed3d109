/**
 * Corrects the ratio while training runs, which the FastFlow paper leaves open (its section 9). The
 * control looks at which side the training loop waits for, and moves elements to the other side. If
 * training does not wait, workers get less, in the end nothing. Pure: it takes windows of steps and
 * returns a ratio.
 *
 * A window of some hundred ms is an inexact measurement. The control therefore averages which side
 * training waits for, and makes a large step only if it was the same side for a while (stochastic
 * approximation). A regression over many windows shows whether a larger ratio makes training slower.
 */
import { Level } from "./level.ts";
import { Trend } from "./trend.ts";

/** If training waits for at least this share of its time, the control searches for a better ratio. */
const WAITING_SHARE_MIN = 0.03;
/** Below this share, training does not wait, and a smaller ratio may be enough. */
const IDLE_SHARE_MAX = 0.01;
/** The weight of `waitMs.both` as a sign that this host is the bottleneck. */
const BUSY_SHARE = 0.2;
/** If training waits for less than this share of its time, steps are shorter in proportion. */
const CLEAR_SHARE = 0.1;
/** Least length of a step, in log-odds of the ratio. */
const STEP_MIN = 0.03;
/** How much longer a step is if training always waits for the same side. */
const STEP_GAIN = 1;
/** A shorter step is skipped. */
const STEP_IGNORED = 0.01;
/** The weight of the newest window in the average of the side that training waits for. */
const NEWEST_SHARE = 0.3;
/** While training does not wait, the ratio falls in growing steps: the first, the longest, the growth. */
const LESS_FIRST = 0.2;
const LESS_MAX = 1;
const LESS_GROWTH = 1.5;
/** A return to the workers that costs more than this share of the throughput is undone. */
const LOSS_MAX = 0.02;
/** If throughput differs by more than this share, conditions have changed. */
const CHANGE_MIN = 0.08;
/** Windows until the next try. They double after each try that did not help, up to the maximum. */
const PATIENCE_WINDOWS = 8;
const PATIENCE_WINDOWS_MAX = 128;
/** Windows until {@linkcode RATIO_PROBE} is tried. */
const PROBE_WINDOWS = 32;
/** Windows after which a smaller ratio counts as enough, and the next one is tried. */
const ENOUGH_WINDOWS = 2;
/** A smaller ratio becomes 0: this host prepares all elements, and the service is not used. */
const RATIO_MIN = 0.01;
const RATIO_MAX = 0.99;
/** The ratio with which offloading begins again. */
const RATIO_AGAIN = 0.03;
/** The ratio to try if training waits for this host although workers prepare everything. */
const RATIO_PROBE = 0.7;

/** Some consecutive elements, all with one ratio. */
export interface StepWindow {
  readonly elements: number;
  readonly elapsedMs: number;
  /**
   * How long the training loop waited. `local` and `remote`: for that side, while the other side
   * could give more. `both`: for either side, while the other could not.
   */
  readonly waitMs: { readonly local: number; readonly remote: number; readonly both: number };
}

/** The last change of the ratio, and the ratio and throughput before it. */
interface Move {
  /** `balance`: training waited for one side. `less`: for none. `again`: it waited at ratio 0. */
  readonly kind: "balance" | "less" | "again";
  readonly fromRatio: number;
  readonly throughput: number;
}

/** Searches for the ratio with which training waits least. */
export class RatioControl {
  #ratio: number;
  /** The average of the side that training waits for, from -1 (workers) to 1 (this host). */
  #leaning = 0;
  /** Throughput by ratio, while training waits for this host. */
  #trend = new Trend();
  /** Throughput by ratio, while training does not wait. */
  #idleTrend = new Trend();
  #probePatience = PROBE_WINDOWS;
  #move: Move | undefined;
  /** The logarithm of the throughput since the last change of the ratio. */
  #level = new Level();
  /** The throughput before the control chose ratio 0, and how many of the last windows were slower. */
  #beforeAlone: { readonly throughput: number; readonly slower: number } | undefined;
  #lessStep = LESS_FIRST;
  /** Whether the last smaller ratio was enough. */
  #isEnough = false;
  /** The last ratio that was too small. Rarely tried again. */
  #tooLittle = 0;
  #tryPatience = PATIENCE_WINDOWS;
  /** Windows since the last change of the ratio. */
  #windows = 0;

  constructor(ratio: number) {
    this.#ratio = bounded(ratio);
  }

  /** The share of remote elements. With 0 the service is not used. */
  get ratio(): number {
    return this.#ratio;
  }

  /** Takes a window with the current ratio. Returns whether the ratio has changed. */
  observe({ elements, elapsedMs, waitMs: { local, remote, both } }: StepWindow): boolean {
    const throughput = elements / elapsedMs;
    const waitedMs = local + remote + both;
    const last = this.#move;
    this.#windows++;
    this.#level.add(Math.log(throughput));
    if (waitedMs < IDLE_SHARE_MAX * elapsedMs) return this.#offloadLess(last, throughput);
    this.#move = undefined;
    this.#idleTrend = new Trend();
    if (last?.kind === "less" && local + both > remote) return this.#undo(last);
    if (waitedMs < WAITING_SHARE_MIN * elapsedMs) return false;
    const isWorse = last?.kind === "again" && throughput < last.throughput * (1 - LOSS_MAX);
    if (isWorse) return this.#undo(last);
    if (this.#ratio === 0) return this.#offloadAgain(throughput);
    // While neither side could give more, this host is busy, and may be the bottleneck.
    const here = local + BUSY_SHARE * both;
    const clearMs = Math.max(here + remote, CLEAR_SHARE * elapsedMs);
    return this.#balance((here - remote) / clearMs, throughput);
  }

  /** Moves elements to the side that training waits less for. */
  #balance(waited: number, throughput: number): boolean {
    if (waited > 0) this.#trend.add(this.#ratio, Math.log(throughput));
    else this.#trend = new Trend();
    // Training waits here, but a larger ratio made it slower: receiving costs much CPU time.
    const direction = waited > 0 && this.#trend.direction < 0 ? -waited : waited;
    if (direction * this.#leaning < 0) this.#leaning /= 2;
    this.#leaning += NEWEST_SHARE * (direction - this.#leaning);
    if (this.#ratio === RATIO_MAX && direction > 0) return this.#probe(throughput);
    const step = direction * (STEP_MIN + STEP_GAIN * this.#leaning ** 4);
    if (Math.abs(step) < STEP_IGNORED) return false;
    return this.#moveTo(moved(this.#ratio, step), "balance", throughput);
  }

  /**
   * Workers prepare everything, but training waits for this host, perhaps because receiving costs
   * much CPU time. Tries a smaller ratio at times.
   */
  #probe(throughput: number): boolean {
    if (this.#windows < this.#probePatience) return false;
    this.#probePatience = longer(this.#probePatience);
    return this.#moveTo(RATIO_PROBE, "balance", throughput);
  }

  /** Training does not wait: tries at times whether a smaller ratio is enough. */
  #offloadLess(move: Move | undefined, throughput: number): boolean {
    this.#idleTrend.add(this.#ratio, Math.log(throughput));
    // A smaller ratio made training steps slower: they share this host's CPUs with preparing.
    if (this.#ratio < RATIO_MAX && this.#idleTrend.direction > 0) {
      const fromRatio = bounded(moved(Math.max(RATIO_AGAIN, this.#ratio), LESS_FIRST));
      return this.#undo({ kind: "less", fromRatio });
    }
    // Elements in buffers hide a shortage for a while.
    if (move?.kind === "less" && this.#windows === ENOUGH_WINDOWS) {
      this.#lessStep = Math.min(LESS_MAX, LESS_GROWTH * this.#lessStep);
      this.#isEnough = true;
    }
    const isEnoughNow = this.#ratio <= this.#tooLittle && this.#windows >= ENOUGH_WINDOWS;
    if (isEnoughNow || this.#level.hasChanged(CHANGE_MIN)) {
      this.#tooLittle = 0;
      this.#tryPatience = PATIENCE_WINDOWS;
    }
    const next = moved(this.#ratio, -this.#lessStep);
    const isNew = this.#isEnough && next > this.#tooLittle;
    if (this.#ratio === 0 || this.#windows < (isNew ? ENOUGH_WINDOWS : this.#tryPatience)) {
      return false;
    }
    return this.#moveTo(isNew ? next : moved(this.#ratio, -LESS_FIRST), "less", throughput);
  }

  /** This host prepares everything, and training waits: tries workers at times. */
  #offloadAgain(throughput: number): boolean {
    const hasChanged = this.#isSlowerAlone(throughput) || this.#level.hasChanged(CHANGE_MIN);
    if (!hasChanged && this.#windows < this.#tryPatience) return false;
    this.#leaning = 0;
    this.#trend = new Trend();
    return this.#moveTo(RATIO_AGAIN, "again", throughput);
  }

  /** Whether training is slower than before ratio 0 was chosen. Only its first windows show that. */
  #isSlowerAlone(throughput: number): boolean {
    if (this.#beforeAlone === undefined || this.#windows > PATIENCE_WINDOWS) return false;
    const { throughput: before, slower } = this.#beforeAlone;
    const isSlower = throughput < before * (1 - CHANGE_MIN);
    this.#beforeAlone = { throughput: before, slower: isSlower ? slower + 1 : 0 };
    return this.#beforeAlone.slower === ENOUGH_WINDOWS;
  }

  #undo({ kind, fromRatio }: Pick<Move, "kind" | "fromRatio">): true {
    if (kind === "less") this.#tooLittle = this.#ratio;
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
    this.#beforeAlone = wanted === 0 ? { throughput, slower: 0 } : undefined;
    this.#change(wanted);
    return true;
  }

  #change(ratio: number): void {
    this.#ratio = ratio;
    this.#windows = 0;
    this.#level = new Level();
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
