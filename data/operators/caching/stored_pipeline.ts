/** What tells the pipeline before `cache(path)` or `snapshot` from others. */
import { signatureOf } from "../../checkpoint/saving.ts";
import type { IteratorContext } from "../../context.ts";
import type { DatasetNode } from "../../node.ts";
import { withDrawnSeed } from "../options.ts";

/**
 * The signature of the operators up to `input`, with the seed of the iteration. Computed once in an
 * iteration, because large captures take long to write, and may change only between two.
 */
export function storedPipeline(context: IteratorContext, input: DatasetNode): string {
  const { chosenSeed } = context.randomState;
  const bySeed = context.sharedFor(input, () => new Map<bigint | undefined, string>());
  return bySeed.getOrInsertComputed(
    chosenSeed,
    () => signatureOf(withDrawnSeed(input, chosenSeed)),
  );
}
