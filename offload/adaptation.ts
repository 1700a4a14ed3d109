/** What the iterators of an `offload` node learn, epoch after epoch: the candidate and its ratio. */
import type { OffloadChoice, OffloadNode } from "../data/operators/offload.ts";
import { RatioControl } from "./adapt.ts";
import { CandidateControl } from "./candidate_control.ts";
import { estimateOf, staysLocal } from "./decide.ts";
import type { EpochFigures } from "./epoch_meter.ts";
import { OffloadPlan } from "./plan.ts";
import type { PlanRequest } from "./planner.ts";

/** An epoch with fewer batches is too short to judge its candidate. */
const BATCHES_MIN = 25;
/** Within an epoch, a new candidate's ratio settles in its first period. Later periods judge it. */
const PERIOD: Period = { batches: 500, ms: 5_000 };
/** The first ratio of a candidate other than the plan's. */
const RATIO_FIRST = 0.5;
/**
 * Planning again takes at most this share of the time since the last plan. A service that could not be
 * reached is tried earlier.
 */
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
  readonly #cuts: CandidateControl | undefined;
  readonly #controls = new Map<string, RatioControl>();
  #trainedMs = 0;
  #planAgain: Adaptation["planAgain"];

  /** @param cuts Chooses among candidates. Default: one with the plan's estimates. */
  constructor(plan: OffloadChoice, cuts?: CandidateControl, period = PERIOD) {
    this.#plan = plan;
    this.period = period;
    this.#cuts = cuts;
    const estimates = plan instanceof OffloadPlan ? estimatesOf(plan) : undefined;
    if (estimates !== undefined && estimates.size > 1) {
      this.#cuts ??= new CandidateControl(estimates, plan.candidate);
    }
  }

  /** Whether another candidate may be chosen. */
  get hasChoice(): boolean {
    return this.#cuts !== undefined;
  }

  /** The candidate and ratio of the next epoch or period. */
  get choice(): OffloadChoice {
    const candidate = this.#cuts === undefined ? this.#plan.candidate : this.#cuts.candidate;
    return candidate === null
      ? { candidate, ratio: 0 }
      : { candidate, ratio: this.controlOf(candidate).ratio };
  }

  /** What to plan again with: set if the plan measured no candidate and training now waits. */
  get planAgain(): Pick<PlanRequest, "stepMs" | "speedUpThreshold"> | undefined {
    return this.#planAgain;
  }

  /** Whether, by the plan, preparing an element here costs more CPU time than receiving it. */
  savesCpu(candidate: string): boolean {
    if (!(this.#plan instanceof OffloadPlan)) return false;
    const { Pcycle, candidates } = this.#plan.metrics;
    return candidates.some(({ name, Ocycle }) => name === candidate && Ocycle < Pcycle);
  }

  /** How many workers suffice so that training does not wait, if the plan has measured that. */
  get workers(): number | undefined {
    return workersOf(this.#plan);
  }

  /** Begins an epoch. In a restored one, a candidate without a control takes the saved ratio. */
  begin({ candidate, ratio }: OffloadChoice, isSaved: boolean): RatioControl | undefined {
    this.#cuts?.resume(candidate);
    if (candidate === null) return undefined;
    return isSaved ? this.controlOf(candidate, ratio) : this.controlOf(candidate);
  }

  /** The control of a candidate's ratio. It lasts for all epochs; `ratio` is the first. */
  controlOf(candidate: string, ratio: number = this.#firstRatioOf(candidate)): RatioControl {
    return this.#controls.getOrInsertComputed(candidate, () => new RatioControl(ratio));
  }

  /** Takes the figures of a period. Returns whether the next one has another candidate, from `among`. */
  periodEnded({ bytes, elapsedMs }: EpochFigures, among: ReadonlySet<string | null>): boolean {
    this.#trainedMs += elapsedMs;
    return this.#cuts?.observe(1_000 * bytes / elapsedMs, among) === true;
  }

  /** Takes the figures of an epoch, or of its last, partial period. */
  ended({ batches, bytes, elapsedMs, waitMs }: EpochFigures): void {
    this.#trainedMs += elapsedMs;
    if (batches < BATCHES_MIN || elapsedMs === 0) return;
    this.#cuts?.observe(1_000 * bytes / elapsedMs);
    if (!isWithoutCandidates(this.#plan)) return;
    const { planningMs, decision: { speedUpThreshold } } = this.#plan;
    const busyMs = elapsedMs - waitMs;
    const waits = !staysLocal({ Gthp: 1 / busyMs, Lthp: 1 / elapsedMs }, speedUpThreshold);
    const isDue = this.#plan.isUnreached ||
      planningMs <= PLANNING_SHARE_MAX * this.#trainedMs;
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

/** Sets what the iterators of a node share. `undefined`: the next iterator begins anew. */
export function setAdaptation(node: OffloadNode, adaptation: Adaptation | undefined): void {
  if (adaptation === undefined) adaptations.delete(node);
  else adaptations.set(node, adaptation);
}

/** How many workers suffice so that training does not wait, if the plan has measured that. */
export function workersOf(plan: OffloadChoice | undefined): number | undefined {
  return plan instanceof OffloadPlan ? plan.decision.workers : undefined;
}

/** Whether a plan measured no candidate, for another reason than that training is short. */
function isWithoutCandidates(plan: OffloadChoice): plan is OffloadPlan {
  return plan instanceof OffloadPlan && plan.metrics.candidates.length === 0 &&
    plan.decision.rule !== "short training";
}

/** The throughput to expect from each candidate, and from this host alone: line 7 of algorithm 1. */
function estimatesOf({ metrics }: OffloadPlan): Map<string | null, number> {
  const { Gthp, Lthp, candidates } = metrics;
  const estimates = new Map<string | null, number>([[null, Math.min(Gthp, Lthp)]]);
  for (const candidate of candidates) {
    estimates.set(candidate.name, Math.min(Gthp, estimateOf(metrics, candidate)));
  }
  return estimates;
}
