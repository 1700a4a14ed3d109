/**
 * Whether to offload, which part of the pipeline, and what share of the data: algorithm 1 of the
 * FastFlow paper (section 4), and what Leat changes in it. Names and line numbers are the paper's.
 * Pure: no clock, no service.
 */

/** The paper's default: with less to gain, remote workers stay free for others (section 4.1). */
export const SPEED_UP_THRESHOLD = 1.1;
/** A candidate must be so many times as fast as local training: measurements are not exact. */
const GAIN_MIN = 1.05;

/** Workers that gave this share of Gthp were not the bottleneck. */
const FULL_SHARE = 0.97;

/** What was measured of one way to offload (table 1). */
export interface CandidateMetrics {
  /** The candidate's name: `"p'2"`, or that of a cut point. */
  readonly name: string;
  /** Training throughput with all data prepared remotely, in bytes per second: thp(P' + M). */
  readonly Rthp: number;
  /** CPU time of this process per step with the offloaded pipeline, in ms. */
  readonly Ocycle: number;
  /** How many workers prepared the data. Left out: it is not known. */
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
  /** The same of training. Default 0: it is the accelerator's. */
  readonly Gcycle?: number;
  /**
   * How much CPU time this host had left with the local pipeline, as a share of what it used: it
   * waits for storage, or for steps. Default 0.
   */
  readonly idle?: number;
  /** Empty if offloading was ruled out before a candidate was measured. */
  readonly candidates: readonly CandidateMetrics[];
}

/** What is done. */
export interface OffloadDecision {
  /** The candidate to apply; `null`: everything stays local. */
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
    /** There was no time to measure what it takes. */
    | "no time";
  /** Gthp / Lthp: the speed-up if there were no stall. */
  readonly speedUpMax: number;
  /** With a smaller `speedUpMax` nothing is offloaded. */
  readonly speedUpThreshold: number;
  /** The estimated training throughput, in bytes per second. */
  readonly estimate: number;
  /** The most that remote workers and the network give, in bytes per second. */
  readonly Upper?: number;
  /** What remote workers must give so that training does not wait, in bytes per second. */
  readonly Lower?: number;
  /**
   * n_workers of section 9: with so many workers training would not wait. Left out: the measured
   * ones were not counted.
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
 * assumes that this host prepares less by the share Ocycle / Pcycle, whatever is offloaded. Here it
 * prepares more instead, because an offloaded step costs it Ocycle and not Pcycle. It is at least
 * what was measured with all data remote, also if several cores share Ocycle.
 */
export function estimateOf(local: LocalMetrics, candidate: CandidateMetrics): number {
  return Math.max(local.Lthp, candidate.Rthp, togetherOf(local, candidate));
}

/** What both sides can give, by the CPU time that this host has. */
function togetherOf(
  { Lthp, Pcycle, Gcycle = 0, idle = 0 }: LocalMetrics,
  { Rthp, Ocycle }: CandidateMetrics,
): number {
  const local = Pcycle + Gcycle;
  if (local === 0) return Lthp + Rthp;
  // In ms per second, times the size of a step.
  const cpu = Lthp * local * (1 + idle);
  const saved = Pcycle - Ocycle;
  // A dear candidate gives no more than what is left over by this host.
  const byCpu = saved >= 0
    ? (cpu + Rthp * saved) / local
    : (cpu + Lthp * -saved) / (Ocycle + Gcycle);
  return Math.min(Lthp + Rthp, byCpu);
}

/** A candidate is measured no further if even so many times its throughput would be too little. */
const RTHP_MARGIN = 1.15;

/**
 * Whether a candidate with this throughput falls behind one that was measured.
 * @param Ocycle what it takes at least.
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
 * Algorithm 1 with another estimate. The candidate with the greatest one is taken, with the ratio
 * at which both sides reach it; if it is above Gthp, both then have time left. A candidate that
 * gains too little is not applied.
 */
export function decide(
  metrics: OffloadMetrics,
  speedUpThreshold = SPEED_UP_THRESHOLD,
): OffloadDecision {
  const { Gthp, Lthp, candidates } = metrics;
  const speedUpMax = Gthp / Lthp;
  const local = (rule: OffloadDecision["rule"]): OffloadDecision => ({
    ...{ candidate: null, ratio: 0, rule, speedUpMax, speedUpThreshold },
    estimate: Math.min(Gthp, Lthp),
  });
  if (Gthp <= Lthp) return local("no stall");
  if (staysLocal(metrics, speedUpThreshold)) return local("speed-up below threshold");
  const best = greatest(candidates, (at) => estimateOf(metrics, at));
  if (best === undefined) return local("no candidate");
  const estimate = Math.min(Gthp, estimateOf(metrics, best));
  if (estimate < GAIN_MIN * Lthp) return local("no gain");
  const { name: candidate, Rthp, workers = 0 } = best;
  const { Upper, Lower } = boundsOf(metrics, best);
  return {
    ...{ candidate, ratio: ratioOf(metrics, best), rule: "offload" },
    ...{ speedUpMax, speedUpThreshold, estimate, Upper, Lower },
    ...(workers > 0 && Lower < Infinity ? { workers: workersFor(Lower, Rthp / workers) } : {}),
  };
}

/** The share with which both sides finish together. */
function ratioOf({ Gthp, ...local }: OffloadMetrics, candidate: CandidateMetrics): number {
  const { Lthp, Pcycle } = local;
  const { Rthp, Ocycle } = candidate;
  const together = togetherOf(local, candidate);
  // Workers may have more to give than training took: line 11. This host has to manage the rest.
  if (Rthp >= FULL_SHARE * Gthp) {
    return Math.min(1, Rthp / Math.min(Gthp, Math.max(Rthp, together)));
  }
  if (Ocycle < Pcycle) return Math.min(1, Rthp / Math.max(Rthp, together));
  // All remote is faster though it costs as much here: CPUs are no bottleneck, and line 13 is right.
  if (Rthp >= together) return Math.min(1, Rthp / Math.min(Gthp, Lthp + Rthp));
  // As little as possible.
  return 1 - Lthp / Math.min(Gthp, together);
}

/** Lines 8 and 9. */
export function boundsOf(
  { Gthp, Lthp, Pcycle }: OffloadMetrics,
  { Rthp, Ocycle }: CandidateMetrics,
): { readonly Upper: number; readonly Lower: number } {
  return { Upper: Rthp, Lower: (Gthp - Lthp) * (1 + relativeCost(Ocycle, Pcycle)) };
}

/** Section 9, with the throughput of one worker. */
function workersFor(Lower: number, Rthp: number): number {
  return Math.max(1, Math.ceil(Lower / Rthp));
}

/** Ocycle / Pcycle; 0 for a pipeline that needs no measurable CPU time. */
export function relativeCost(Ocycle: number, Pcycle: number): number {
  return Pcycle > 0 ? Ocycle / Pcycle : 0;
}

/** The first of those with the greatest value. */
export function greatest<T>(items: readonly T[], valueOf: (item: T) => number): T | undefined {
  let best: T | undefined;
  for (const item of items) if (best === undefined || valueOf(item) > valueOf(best)) best = item;
  return best;
}
