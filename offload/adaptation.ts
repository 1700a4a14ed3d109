/** What the iterators of an `offload` node learn, epoch after epoch: the candidate and its ratio. */
import type { OffloadChoice, OffloadNode } from "../data/operators/offload.ts";
import { RatioControl } from "./adapt.ts";
import { CutControl } from "./cut_control.ts";
import { estimateOf, staysLocal } from "./decide.ts";
import type { EpochFigures } from "./epoch_meter.ts";
import { OffloadPlan } from "./plan.ts";
import type { PlanRequest } from "./planner.ts";

/** An epoch with fewer batches says too little. */
const BATCHES_MIN = 25;
/** Within an epoch a candidate is judged by so many batches, after as many in which its ratio settles. */
const PERIOD: Period = { batches: 500, ms: 5_000 };
/** The ratio of a candidate that was not chosen at first. */
const RATIO_FIRST = 0.5;
/** Planning again takes at most this share of the time since the last plan. */
const PLANNING_SHARE_MAX = 0.03;

/** The least length of a measurement within an epoch. */
export interface Period {
  readonly batches: number;
  readonly ms: number;
}

/** Adapts a plan while training runs. */
export class Adaptation {
  readonly period: Period;
  readonly #plan: OffloadChoice;
  readonly #cuts: CutControl | undefined;
  readonly #controls = new Map<string, RatioControl>();
  #trainedMs = 0;
  #planAgain: Adaptation["planAgain"];

  /** @param cuts chooses among candidates. Default: by the estimates of the plan. */
  constructor(plan: OffloadChoice, cuts?: CutControl, period = PERIOD) {
    this.#plan = plan;
    this.period = period;
    this.#cuts = cuts;
    const estimates = plan instanceof OffloadPlan ? estimatesOf(plan) : undefined;
    if (estimates !== undefined && estimates.size > 1) {
      this.#cuts ??= new CutControl(estimates, plan.candidate);
    }
  }

  /** Whether another candidate may be chosen. */
  get hasChoice(): boolean {
    return this.#cuts !== undefined;
  }

  /** What the next epoch, or period, does. */
  get choice(): OffloadChoice {
    const candidate = this.#cuts === undefined ? this.#plan.candidate : this.#cuts.candidate;
    return candidate === null
      ? { candidate, ratio: 0 }
      : { candidate, ratio: this.controlOf(candidate).ratio };
  }

  /**
   * What to plan again by. Set if nothing was offloaded because training did not wait for data, and
   * now it does.
   */
  get planAgain(): Pick<PlanRequest, "stepMs" | "speedUpThreshold"> | undefined {
    return this.#planAgain;
  }

  /** Whether preparing an element costs this host more CPU time than receiving it, by the plan. */
  savesCpu(candidate: string): boolean {
    if (!(this.#plan instanceof OffloadPlan)) return false;
    const { Pcycle, candidates } = this.#plan.metrics;
    return candidates.some(({ name, Ocycle }) => name === candidate && Ocycle < Pcycle);
  }

  /** With how many workers training would not wait, if that was measured. */
  get workers(): number | undefined {
    return workersOf(this.#plan);
  }

  /** An epoch begins, or continues from where it was saved, with a ratio of then. */
  begin({ candidate, ratio }: OffloadChoice, isSaved: boolean): RatioControl | undefined {
    this.#cuts?.resume(candidate);
    if (candidate === null) return undefined;
    return isSaved ? this.controlOf(candidate, ratio) : this.controlOf(candidate);
  }

  /** What one epoch has learnt about a candidate holds for the next. */
  controlOf(candidate: string, ratio: number = this.#firstRatioOf(candidate)): RatioControl {
    return this.#controls.getOrInsertComputed(candidate, () => new RatioControl(ratio));
  }

  /**
   * A period of an epoch has ended. True if the next one has another candidate, of those in `among`.
   */
  periodEnded({ bytes, elapsedMs }: EpochFigures, among: ReadonlySet<string | null>): boolean {
    this.#trainedMs += elapsedMs;
    return this.#cuts?.observe(1_000 * bytes / elapsedMs, among) === true;
  }

  ended({ batches, bytes, elapsedMs, waitMs }: EpochFigures): void {
    this.#trainedMs += elapsedMs;
    if (batches < BATCHES_MIN || elapsedMs === 0) return;
    this.#cuts?.observe(1_000 * bytes / elapsedMs);
    if (!isWithoutCandidates(this.#plan)) return;
    const { planningMs, decision: { speedUpThreshold } } = this.#plan;
    const busyMs = elapsedMs - waitMs;
    const waits = !staysLocal({ Gthp: 1 / busyMs, Lthp: 1 / elapsedMs }, speedUpThreshold);
    const isDue = planningMs <= PLANNING_SHARE_MAX * this.#trainedMs;
    this.#planAgain = waits && isDue ? { stepMs: busyMs / batches, speedUpThreshold } : undefined;
  }

  #firstRatioOf(candidate: string): number {
    return candidate === this.#plan.candidate ? this.#plan.ratio : RATIO_FIRST;
  }
}

const adaptations = new WeakMap<OffloadNode, Adaptation>();

/** What the iterators of a node have learnt so far, if they adapt. */
export function knownAdaptation(node: OffloadNode): Adaptation | undefined {
  return adaptations.get(node);
}

/** From now on the iterators of a node adapt by this, or begin again. */
export function setAdaptation(node: OffloadNode, adaptation: Adaptation | undefined): void {
  if (adaptation === undefined) adaptations.delete(node);
  else adaptations.set(node, adaptation);
}

/** With how many workers training would not wait, by a plan that has counted them. */
export function workersOf(plan: OffloadChoice | undefined): number | undefined {
  return plan instanceof OffloadPlan ? plan.decision.workers : undefined;
}

/** Whether a plan was made without measuring a candidate, though there was time to. */
function isWithoutCandidates(plan: OffloadChoice): plan is OffloadPlan {
  return plan instanceof OffloadPlan && plan.metrics.candidates.length === 0 &&
    plan.decision.rule !== "short training";
}

/** What each candidate, and this host alone, may reach: line 7 of algorithm 1. */
function estimatesOf({ metrics }: OffloadPlan): Map<string | null, number> {
  const { Gthp, Lthp, candidates } = metrics;
  const estimates = new Map<string | null, number>([[null, Math.min(Gthp, Lthp)]]);
  for (const candidate of candidates) {
    estimates.set(candidate.name, Math.min(Gthp, estimateOf(metrics, candidate)));
  }
  return estimates;
}
