/**
 * Whether to offload, which part of the pipeline, and what share of the data: algorithm 1 of the
 * FastFlow paper (section 4). Names and line numbers are the paper's. Pure: no clock, no service.
 */

/** The paper's default: with less to gain, remote workers stay free for others (section 4.1). */
export const SPEED_UP_THRESHOLD = 1.1;

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
  /** CPU time of this process per step with the local pipeline. */
  readonly Pcycle: number;
  /** Empty if offloading was ruled out before a candidate was measured. */
  readonly candidates: readonly CandidateMetrics[];
}

/** The result of algorithm 1. */
export interface OffloadDecision {
  /** The candidate to apply; `null`: everything stays local. */
  readonly candidate: string | null;
  /** OffRatio: the share of the data that remote workers prepare, from 0 to 1. */
  readonly ratio: number;
  /** The rule that decided. */
  readonly rule:
    | "no stall"
    | "speed-up below threshold"
    | "no candidate"
    | "no gain"
    | "offload"
    /** Not of algorithm 1: measuring would take longer than it could save. */
    | "short training";
  /** Gthp / Lthp: the speed-up if there were no stall. */
  readonly speedUpMax: number;
  /** The estimated training throughput, in bytes per second. */
  readonly estimate: number;
  /** In bytes per second. Above this, remote workers or the network are the bottleneck. */
  readonly Upper?: number;
  /** In bytes per second. Below this, local CPUs are the bottleneck. */
  readonly Lower?: number;
  /**
   * Where a corrected ratio begins. Line 13 leaves out that an offloaded step costs this host only
   * Ocycle instead of Pcycle; with that, both sides finish together at this ratio.
   */
  readonly startRatio: number;
  /**
   * n_workers of section 9: with so many workers training would not wait. Left out: the measured
   * ones were not counted.
   */
  readonly workers?: number;
}

/** Whether line 3 rules offloading out, so that no candidate need be measured. */
export function staysLocal(
  { Gthp, Lthp }: Pick<OffloadMetrics, "Gthp" | "Lthp">,
  speedUpThreshold = SPEED_UP_THRESHOLD,
): boolean {
  return Gthp <= Lthp || Gthp / Lthp < speedUpThreshold;
}

/** Line 7: the training throughput to expect with a candidate, in bytes per second. */
export function estimateOf(
  { Lthp, Pcycle }: Pick<OffloadMetrics, "Lthp" | "Pcycle">,
  { Rthp, Ocycle }: CandidateMetrics,
): number {
  return Lthp * (1 - relativeCost(Ocycle, Pcycle)) + Rthp;
}

/** A candidate is measured no further if even so many times its throughput would be too little. */
const RTHP_MARGIN = 1.3;

/** Whether a candidate with this throughput, Ocycle aside, falls behind one that was measured. */
export function isBehind(
  local: Pick<OffloadMetrics, "Lthp" | "Pcycle">,
  measured: readonly CandidateMetrics[],
  Rthp: number,
): boolean {
  const best = Math.max(local.Lthp, ...measured.map((at) => estimateOf(local, at)));
  return local.Lthp + RTHP_MARGIN * Rthp < best;
}

/**
 * Algorithm 1. One rule is not the paper's ("no gain"): a candidate whose own estimate is not above
 * Lthp is not applied, because by the paper's model training would become slower.
 */
export function decide(
  metrics: OffloadMetrics,
  speedUpThreshold = SPEED_UP_THRESHOLD,
): OffloadDecision {
  const { Gthp, Lthp, Pcycle, candidates } = metrics;
  const local = (rule: OffloadDecision["rule"]): OffloadDecision => ({
    candidate: null,
    ratio: 0,
    startRatio: 0,
    rule,
    speedUpMax: Gthp / Lthp,
    estimate: Math.min(Gthp, Lthp),
  });
  // Lines 3 and 4.
  if (Gthp <= Lthp) return local("no stall");
  if (staysLocal(metrics, speedUpThreshold)) return local("speed-up below threshold");
  // Line 7.
  const best = candidates.reduce<CandidateMetrics | undefined>(
    (best, at) => !best || estimateOf(metrics, at) > estimateOf(metrics, best) ? at : best,
    undefined,
  );
  if (best === undefined) return local("no candidate");
  const estimate = estimateOf(metrics, best);
  if (estimate <= Lthp) return local("no gain");
  const { name, Rthp, Ocycle, workers = 0 } = best;
  // Lines 8 and 9.
  const Upper = Rthp;
  const cost = relativeCost(Ocycle, Pcycle);
  const Lower = (Gthp - Lthp) * (1 + cost);
  // Lines 10 to 13. A measured Rthp may be a little above Gthp.
  const isEnough = Lower < Upper;
  const ratio = isEnough ? Math.min(1, Upper / Gthp) : Rthp / (Lthp + Rthp);
  const freed = Math.max(0, 1 - cost);
  const startRatio = isEnough ? ratio : Math.min(1, Rthp / (Lthp + Rthp * freed));
  return {
    candidate: name,
    ratio,
    startRatio,
    rule: "offload",
    speedUpMax: Gthp / Lthp,
    estimate: Math.min(Gthp, estimate),
    Upper,
    Lower,
    ...(workers > 0 && Lower < Infinity ? { workers: workersFor(Lower, Rthp / workers) } : {}),
  };
}

/** Section 9, with the throughput of one worker. */
function workersFor(Lower: number, Rthp: number): number {
  return Math.max(1, Math.ceil(Lower / Rthp));
}

/** Ocycle / Pcycle; 0 for a pipeline that needs no measurable CPU time. */
function relativeCost(Ocycle: number, Pcycle: number): number {
  return Pcycle > 0 ? Ocycle / Pcycle : 0;
}
