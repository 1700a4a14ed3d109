/** Reads what workers prepare for the conditional operator: chosen splits of a DETERMINISTIC job. */
import type { ServiceAccess } from "../actors/client/access.ts";
import { clientOptions, datasetDefinition } from "../actors/client/starting.ts";
import { hexOf64 } from "../core/bytes.ts";
import { definedFields } from "../core/tree.ts";
import type { IteratorContext } from "../data/context.ts";
import type { OffloadNode, OffloadOptions } from "../data/operators/offload.ts";
import { digestOfSplits, packSplits } from "../data/sharding/split_table.ts";
import { cutFiles } from "../data/sharding/splits.ts";
import type { OpenRemote } from "./conditional/remote_side.ts";
import { type CutPoint, withoutSource } from "./cut_points.ts";

/** Default of `bufferBytesMax`. With larger buffers, a drop in the workers' speed would show late. */
const BUFFER_BYTES_MAX = 64 * 2 ** 20;

/** The seed with which both sides run the pipeline. */
export function seedFor(node: OffloadNode, context: IteratorContext): bigint {
  return context.chosenSeedOf(node) ??
    (node.options.deterministic === true ? 0n : drawnSeed(context));
}

/** A seed from the iterator's random state. A restored iterator gets the same one. */
function drawnSeed({ randomState }: IteratorContext): bigint {
  const [low, high] = randomState.root().fork("offload").name;
  return BigInt.asUintN(64, BigInt(low) << 32n ^ BigInt(high >>> 0));
}

/** Returns a function that opens a reader of chosen splits. Each call starts its own job. */
export function remoteReader(
  { service, token, ca, compression, targetTags, bufferBytesMax = BUFFER_BYTES_MAX }:
    OffloadOptions,
  { root, isShuffled, readHere }: Pick<CutPoint, "root" | "readHere"> & {
    readonly isShuffled: boolean;
  },
  { seed, context, table }: {
    readonly seed: bigint;
    readonly context: IteratorContext;
    readonly table: { readonly total: number; readonly digest: string };
  },
  access: ServiceAccess,
): OpenRemote {
  const { total } = table;
  const expectedDigest = readHere === undefined
    ? table.digest
    : digestOfSplits(packSplits([cutFiles(total)]));
  const reading = clientOptions(
    datasetDefinition(
      readHere === undefined ? root : withoutSource(root, readHere, total),
      compression,
    ),
    {
      service,
      processingMode: "DETERMINISTIC",
      bufferBytesMax,
      ...(targetTags === undefined ? {} : { targetTags }),
    },
    context.randomState.epoch,
  );
  const ordered = { seed: hexOf64(seed), shuffled: isShuffled };
  const credentials = definedFields({ token, ca });
  // To the service this is a reader restored at the epoch's end that still lacks some splits.
  return (sequences, feed) =>
    access.read(service, credentials, {
      ...reading,
      parameters: { ...reading.parameters, ordered },
      ordered: { startAt: total, behind: sequences, expectedDigest },
    }, feed);
}
