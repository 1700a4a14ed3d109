/** Algorithm 1 as the FastFlow paper has it (section 4), with its names and line numbers. */
import {
  boundsOf,
  greatest,
  type OffloadMetrics,
  relativeCost,
  staysLocal,
} from "../../../offload/decide.ts";

/** What lines 3 to 13 of the paper give. */
export interface Algorithm1 {
  /** `null`: everything stays local. */
  readonly candidate: string | null;
  readonly OffRatio: number;
  /** In bytes per second. Above this, remote workers or the network are the bottleneck. */
  readonly Upper?: number;
  /** In bytes per second. Below this, local CPUs are the bottleneck. */
  readonly Lower?: number;
}

export function algorithm1(metrics: OffloadMetrics): Algorithm1 {
  const { Gthp, Lthp, Pcycle, candidates } = metrics;
  const best = greatest(
    candidates,
    // Line 7.
    ({ Rthp, Ocycle }) => Lthp * (1 - relativeCost(Ocycle, Pcycle)) + Rthp,
  );
  // Lines 3 and 4.
  if (staysLocal(metrics) || !best) return { candidate: null, OffRatio: 0 };
  const { name: candidate, Rthp } = best;
  // Lines 8 to 13. A measured Rthp may be a little above Gthp.
  const { Upper, Lower } = boundsOf(metrics, best);
  const OffRatio = Lower < Upper ? Math.min(1, Upper / Gthp) : Rthp / (Lthp + Rthp);
  return { candidate, OffRatio, Upper, Lower };
}
