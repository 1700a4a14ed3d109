/** Shrinks a failing input while it still fails. */
import { joined } from "../../core/bytes.ts";

/** Limits of shrinking. */
interface ShrinkLimits {
  readonly runsMax: number;
}

/**
 * Returns a shorter input that also fails, or the input itself. Parts are removed, from halves down to
 * single bytes. Then as many of the other bytes as possible are set to zero.
 */
export async function shrink(
  input: Uint8Array,
  isFailing: (candidate: Uint8Array) => Promise<boolean>,
  { runsMax }: ShrinkLimits,
): Promise<Uint8Array> {
  let best = input;
  let runs = 0;
  const fails = async (candidate: Uint8Array) => ++runs <= runsMax && await isFailing(candidate);
  for (let size = best.length >> 1; size > 0 && runs < runsMax; size >>= 1) {
    for (let at = 0; at < best.length && runs < runsMax;) {
      const candidate = joined([best.subarray(0, at), best.subarray(at + size)]);
      if (candidate.length < best.length && await fails(candidate)) best = candidate;
      else at += size;
    }
  }
  for (let at = 0; at < best.length && runs < runsMax; at++) {
    if (best[at] === 0) continue;
    const candidate = best.slice();
    candidate[at] = 0;
    if (await fails(candidate)) best = candidate;
  }
  return best;
}
