/**
 * Checkpoints of `iterator.save()`. Their checksums are repaired, so that the readers reach the state.
 */
import { nodeCrypto } from "../../../core/builtins.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { Dataset, LeatError, tensor } from "../../../mod.ts";
import type { SimRandom } from "../../../sim/engine/random.ts";
import { mutateBytes } from "../mutate_bytes.ts";
import { mutateTree, writeJson } from "../mutate_tree.ts";
import type { Target } from "../target.ts";

/** Format and checksum precede the state. */
const FORMAT_BYTES = 8;
const HEADER_BYTES = FORMAT_BYTES + 32;
const STEPS_MAX = 12;

const PIPELINES: readonly (() => Dataset<unknown>)[] = [
  () => Dataset.range(40).shuffle(8, { seed: 1n }).batch(3).prefetch(2),
  () => Dataset.range(30).map((x) => [x, "text"], { numParallelCalls: 3 }).repeat(2).skip(2),
  () => Dataset.range(9).interleave((x) => Dataset.range(x), { cycleLength: 3 }).cache(),
  () => Dataset.range(20).window(4, { shift: 2 }).flatMap((window) => window as Dataset<number>),
  () => Dataset.range(50).filter((x) => x % 3 > 0).scan(0, (sum, x) => [sum + x, sum]).take(20),
  () => Dataset.zip([Dataset.range(9), Dataset.range(20).shuffle(4)]).enumerate(),
  () => Dataset.from([1, 2, 3].map((x) => ({ t: tensor([x, x]) }))).unbatch().batch(2).rebatch(3),
  () =>
    Dataset.range(30).groupByWindow({
      key: (x) => BigInt(x % 3),
      reduce: (_key, group) => group.batch(4),
      windowSize: 4,
    }),
  () => Dataset.range(30).map((x) => new Int32Array(x % 5)).pack({ length: 8 }),
  () => Dataset.range(30).globalShuffle({ seed: 1n }).map((x) => tensor([x])).paddedBatch(2),
  () => Dataset.sampleFromDatasets([Dataset.range(9), Dataset.random()], { seed: 2n }).take(30),
].map((make) => make as () => Dataset<unknown>);

/** Saves states after some elements, each preceded by the number of its pipeline. */
async function states(): Promise<[Uint8Array, ...Uint8Array[]]> {
  const found: Uint8Array[] = [];
  for (const [number, make] of PIPELINES.entries()) {
    for (const steps of [0, 5]) {
      try {
        await using iterator = openIterator(make().node, { seed: 1n });
        for (let step = 0; step < steps; step++) await iterator.next();
        found.push(Uint8Array.of(number, ...await iterator.save()));
      } catch (error) {
        throw new Error(`pipeline ${number}: ${String(error)}`, { cause: error });
      }
    }
  }
  const [first, ...others] = found;
  return [first!, ...others];
}

/** Repairs the checksum. */
function sealed(input: Uint8Array): Uint8Array {
  const bytes = input.slice();
  if (bytes.length < 1 + HEADER_BYTES) return bytes;
  const digest = nodeCrypto().createHash("sha256").update(bytes.subarray(1 + HEADER_BYTES))
    .digest();
  bytes.set(digest, 1 + FORMAT_BYTES);
  return bytes;
}

/** Changes the JSON of a state and leaves the bytes after it. */
function withJson(input: Uint8Array, change: (tree: unknown) => unknown): Uint8Array {
  const start = 1 + HEADER_BYTES;
  const view = new DataView(input.buffer, input.byteOffset);
  const length = view.getUint32(start, true);
  const json = new TextDecoder().decode(input.subarray(start + 4, start + 4 + length));
  const changed = writeJson(change(JSON.parse(json)));
  const head = new Uint8Array(start + 4);
  head.set(input.subarray(0, start));
  new DataView(head.buffer).setUint32(start, changed.length, true);
  return Uint8Array.of(...head, ...changed, ...input.subarray(start + 4 + length));
}

async function restore(input: Uint8Array): Promise<void> {
  const make = PIPELINES[(input[0] ?? 0) % PIPELINES.length]!;
  const iterator = openIterator(make().node, { seed: 1n });
  try {
    await iterator.restore(input.subarray(1));
  } catch (error) {
    if (!(error instanceof LeatError)) throw error;
    // Restoring a state calls functions again, whose errors have any code.
    throw new LeatError("invalid_argument", error.message);
  }
  try {
    for (let step = 0; step < STEPS_MAX; step++) {
      const { done } = await iterator.next();
      if (done) break;
    }
    await iterator.return();
  } catch {
    // A state with a valid checksum is trusted: its elements may have the wrong type for functions
    // and operators.
  }
}

const numbers = () =>
  Dataset.range(100).batch(3).distribute({
    service: "ws://127.0.0.1:1",
    processingMode: "DETERMINISTIC",
  });

/** Makes a token of an unread stream, and a token of a partly read stream with the same header. */
async function tokens(): Promise<[Uint8Array, Uint8Array]> {
  await using iterator = openIterator(numbers().node, { seed: 1n });
  const begun = Uint8Array.of(0, ...await iterator.save());
  const position = {
    ...{ sequence: 4, given: 2, carried: [{ sequence: 2, rows: 1 }, { sequence: 3, rows: 2 }] },
    ...{ digest: "0123456789abcdef", ended: false, number: 7 },
  };
  const later = withJson(begun, (tree) => ({ ...tree as object, state: position }));
  return [begun, sealed(later)];
}

/** Restores a token. Nothing is dialled before the first element. */
async function restoreToken(input: Uint8Array): Promise<void> {
  await using iterator = openIterator(numbers().node, { seed: 1n });
  await iterator.restore(input.subarray(1));
  await iterator.save();
}

/** Mutates a state. It mostly keeps a valid checksum, and always its pipeline. */
function mutateState(
  input: Uint8Array,
  random: SimRandom,
  seeds: readonly Uint8Array[],
): Uint8Array {
  if (random.chance(0.2)) {
    const bytes = mutateBytes(input, random, seeds);
    return random.chance(0.8) ? sealed(bytes) : bytes;
  }
  return sealed(withJson(input, (tree) => {
    const { signature, ...state } = tree as Record<string, unknown>;
    return { signature, ...mutateTree(state, random) };
  }));
}

/** Targets that restore checkpoints. */
export const CHECKPOINT_TARGETS: Readonly<Record<string, Target>> = {
  checkpoint: {
    help: "saved iterators of some pipelines, which are restored and read on",
    open: async () => ({ seeds: await states(), mutate: mutateState, run: restore }),
  },
  token: {
    help: "places in a DETERMINISTIC stream, which are restored",
    open: async () => ({ seeds: await tokens(), mutate: mutateState, run: restoreToken }),
  },
};
