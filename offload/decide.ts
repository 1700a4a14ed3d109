/**
 * Whether to offload, which part of the pipeline, and what share of the data: algorithm 1 of the
 * FastFlow paper (section 4), and what Leat changes in it. Names and line numbers are the paper's.
 * Pure: no clock, no service.
 */

/** The paper's default: for a smaller speed-up, workers stay free for other jobs (section 4.1). */
export const SPEED_UP_THRESHOLD = 1.1;
/** A candidate must be this many times as fast as local training: measurements are inexact. */
const GAIN_MIN = 1.05;

/** Workers that reach this share of Gthp are not the bottleneck. */
const FULL_SHARE = 0.97;

/** What was measured of one way to offload (table 1). */
export interface CandidateMetrics {
  /** The candidate's name: `"p'2"`, or that of a cut point. */
  readonly name: string;
  /** Training throughput with all data prepared remotely, in bytes per second: thp(P' + M). */
  readonly Rthp: number;
  /** CPU time of this process per step with the offloaded pipeline, in ms. */
  readonly Ocycle: number;
  /** How many workers prepared the data. Left out: unknown. */
  readonly workers?: number;
}

/** What was measured (table 1). Throughputs are in bytes per second, CPU times in ms per step. */
export interface OffloadMetrics {
  /** The throughput of the training steps alone: thp(M). `Infinity` if there are none. */
  readonly Gthp: number;
  /** Training throughput with the local pipeline: thp(P + M). */
  readonly Lthp: number;
  /** CPU time of this process per step with the local pipeline, without training. */
  readonly Pcycle: number;
  /** CPU time of this process per step for training. Default 0: only the accelerator trains. */
  readonly Gcycle?: number;
  /**
   * CPU time that this host left unused with the local pipeline (it waited for storage or training
   * steps), as a share of the CPU time that it used. Default 0.
   */
  readonly idle?: number;
  /** Empty if offloading was ruled out before a candidate was measured. */
  readonly candidates: readonly CandidateMetrics[];
}

/** What algorithm 1 decides. */
export interface OffloadDecision {
  /** The candidate to apply. `null`: everything stays local. */
  readonly candidate: string | null;
  /** The share of the data that remote workers prepare, from 0 to 1. */
  readonly ratio: number;
  /** The rule that decided. */
  readonly rule:
    | "no stall"
    | "speed-up below threshold"
    | "no candidate"
    | "no gain"
    | "offload"
    /** Measuring would take longer than it could save. */
    | "short training"
    /** Planning ran out of time before a measurement that it needs. */
    | "no time";
  /** Gthp / Lthp: the speed-up if there were no stall. */
  readonly speedUpMax: number;
  /** With a smaller `speedUpMax` nothing is offloaded. */
  readonly speedUpThreshold: number;
  /** The estimated training throughput, in bytes per second. */
  readonly estimate: number;
  /** The greatest throughput of remote workers and the network, in bytes per second. */
  readonly Upper?: number;
  /** The throughput of remote workers at which training does not wait, in bytes per second. */
  readonly Lower?: number;
  /**
   * n_workers of section 9: the number of workers with which training would not wait. Left out if it
   * is unknown: if several workers kept up with training, fewer may, too.
   */
  readonly workers?: number;
}

type LocalMetrics = Omit<OffloadMetrics, "Gthp" | "candidates">;

/** Whether line 3 rules offloading out, so that no candidate need be measured. */
export function staysLocal(
  { Gthp, Lthp }: Pick<OffloadMetrics, "Gthp" | "Lthp">,
  speedUpThreshold = SPEED_UP_THRESHOLD,
): boolean {
  return Gthp <= Lthp || Gthp / Lthp < speedUpThreshold;
}

/**
 * The throughput to expect if this host and the workers finish together, in bytes per second. Line 7
 * assumes that offloading lowers this host's own share by Ocycle / Pcycle. Leat differs: an offloaded
 * step costs this host Ocycle instead of Pcycle, so it has time to prepare more. The estimate is at
 * least the throughput that was measured with all data remote.
 */
export function estimateOf(local: LocalMetrics, candidate: CandidateMetrics): number {
  return Math.max(local.Lthp, candidate.Rthp, togetherOf(local, candidate));
}

/** The throughput of both sides together, as far as the CPU time of this host allows. */
function togetherOf(
  { Lthp, Pcycle, Gcycle = 0, idle = 0 }: LocalMetrics,
  { Rthp, Ocycle }: CandidateMetrics,
): number {
  const local = Pcycle + Gcycle;
  if (local === 0) return Lthp + Rthp;
  // The CPU time that this host has, in ms per second, times the bytes of a step.
  const cpu = Lthp * local * (1 + idle);
  const saved = Pcycle - Ocycle;
  // A candidate that costs more than preparing here gets only the CPU time that Lthp leaves unused.
  const byCpu = saved >= 0
    ? (cpu + Rthp * saved) / local
    : (cpu + Lthp * -saved) / (Ocycle + Gcycle);
  return Math.min(Lthp + Rthp, byCpu);
}

/** A measurement ends early if even this many times the throughput would be too little. */
const RTHP_MARGIN = 1.15;

/**
 * Whether a candidate with this throughput is slower than local training, or than a measured candidate.
 * @param Ocycle The least that the candidate costs.
 */
export function isBehind(
  local: LocalMetrics,
  measured: readonly CandidateMetrics[],
  Rthp: number,
  Ocycle = 0,
): boolean {
  const best = Math.max(local.Lthp, ...measured.map((at) => estimateOf(local, at)));
  return estimateOf(local, { name: "", Rthp: RTHP_MARGIN * Rthp, Ocycle }) < best;
}

/**
 * Algorithm 1, with Leat's estimate. Takes the candidate with the greatest estimate, and the ratio at
 * which both sides together reach it. If the estimate is above Gthp, both sides have time left. A
 * candidate that gains too little is not applied.
 */
export function decide(
  metrics: OffloadMetrics,
  speedUpThreshold = SPEED_UP_THRESHOLD,
): OffloadDecision {
  const { Gthp, Lthp } = metrics;
  const speedUpMax = Gthp / Lthp;
  const local = (rule: OffloadDecision["rule"]): OffloadDecision => ({
    ...{ candidate: null, ratio: 0, rule, speedUpMax, speedUpThreshold },
    estimate: Math.min(Gthp, Lthp),
  });
  if (Gthp <= Lthp) return local("no stall");
  if (staysLocal(metrics, speedUpThreshold)) return local("speed-up below threshold");
  const best = bestOf(metrics);
  if (best === undefined) return local("no candidate");
  const estimate = Math.min(Gthp, estimateOf(metrics, best));
  if (estimate < GAIN_MIN * Lthp) return local("no gain");
  const { name: candidate } = best;
  const { Upper, Lower } = boundsOf(metrics, best);
  const workers = workersFor(Lower, best, Gthp);
  return {
    ...{ candidate, ratio: shareFor(metrics, best).ratio, rule: "offload" },
    ...{ speedUpMax, speedUpThreshold, estimate, Upper, Lower },
    ...(workers === undefined ? {} : { workers }),
  };
}

/** The candidate with the greatest estimate. */
export function bestOf(metrics: OffloadMetrics): CandidateMetrics | undefined {
  return greatest(metrics.candidates, (at) => estimateOf(metrics, at));
}

/** Why workers get their share. */
export type ShareReason =
  | "workers suffice"
  | "workers are faster"
  | "all of workers"
  | "time left"
  | "finish together"
  | "least share";

/** The share of the workers, and why they get it. */
export function shareFor(
  { Gthp, ...local }: OffloadMetrics,
  candidate: CandidateMetrics,
): { readonly ratio: number; readonly why: ShareReason } {
  const { Lthp, Pcycle } = local;
  const { Rthp, Ocycle } = candidate;
  const together = togetherOf(local, candidate);
  // Line 11: workers kept up with training, and may have more to give. This host prepares the rest.
  if (keepsUp(Rthp, Gthp)) {
    const ratio = Math.min(1, Rthp / Math.min(Gthp, Math.max(Rthp, together)));
    return { ratio, why: "workers suffice" };
  }
  if (Ocycle < Pcycle) {
    if (Rthp >= together) return { ratio: 1, why: "workers are faster" };
    return { ratio: Rthp / together, why: together > Gthp ? "time left" : "finish together" };
  }
  // All remote is faster, and saves no CPU time here: CPUs are no bottleneck, so line 13 applies.
  if (Rthp >= together) {
    const both = Lthp + Rthp;
    return both > Gthp
      ? { ratio: Rthp / Gthp, why: "all of workers" }
      : { ratio: Rthp / both, why: "finish together" };
  }
  // A remote element costs this host more than a local one: the smallest ratio that reaches the estimate.
  return { ratio: 1 - Lthp / Math.min(Gthp, together), why: "least share" };
}

/** Lines 8 and 9. */
export function boundsOf(
  { Gthp, Lthp, Pcycle }: OffloadMetrics,
  { Rthp, Ocycle }: CandidateMetrics,
): { readonly Upper: number; readonly Lower: number } {
  return { Upper: Rthp, Lower: (Gthp - Lthp) * (1 + relativeCost(Ocycle, Pcycle)) };
}

/**
 * n_workers of section 9; undefined if it is unknown. If workers kept up with training, `Rthp` does not
 * show what each of them can give: fewer may suffice.
 */
function workersFor(
  Lower: number,
  { Rthp, workers = 0 }: CandidateMetrics,
  Gthp: number,
): number | undefined {
  if (workers === 0 || Math.min(Lower, Gthp) === Infinity) return undefined;
  if (keepsUp(Rthp, Gthp)) return workers === 1 ? 1 : undefined;
  // Training takes at most Gthp, however much more Lower is because receiving costs CPU time.
  return Math.max(1, Math.ceil(Math.min(Lower, Gthp) * workers / Rthp));
}

/** Whether training hardly waits if workers prepare everything. */
function keepsUp(Rthp: number, Gthp: number): boolean {
  return Rthp >= FULL_SHARE * Gthp;
}

/** Ocycle / Pcycle; 0 for a pipeline that needs no measurable CPU time. */
export function relativeCost(Ocycle: number, Pcycle: number): number {
  return Pcycle > 0 ? Ocycle / Pcycle : 0;
}

/** The item with the greatest value; the first of several. */
export function greatest<T>(items: readonly T[], valueOf: (item: T) => number): T | undefined {
  let best: T | undefined;
  for (const item of items) if (best === undefined || valueOf(item) > valueOf(best)) best = item;
  return best;
}
