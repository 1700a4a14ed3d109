/** DYNAMIC over every operator, read by several workers. */
import { Dataset, LeatError, LocalCluster, type Tensor } from "../../../mod.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";

const WORKERS = 3;

/** The expected result of a pipeline: exactly its local elements, or a property of them. */
type Wanted = "the same" | ((elements: unknown[]) => void);

const range = Dataset.range(60);
const isEven = (x: number) => x % 2 === 0;

/** All elements of 0 to n - 1, once, in any structure. */
function each(n: number, times = 1): Wanted {
  return (elements) => {
    const numbers = elements.flat(Infinity).flatMap(numbersIn).sort((a, b) => a - b);
    assertEquals(numbers, Array.from({ length: n * times }, (_, i) => Math.floor(i / times)));
  };
}

/** At most one of each, of 0 to n - 1. */
function someOf(n: number, least: number): Wanted {
  return (elements) => {
    const numbers = elements.flatMap(numbersIn);
    assertEquals(new Set(numbers).size, numbers.length);
    assert(numbers.every((x) => 0 <= x && x < n) && numbers.length >= least, String(numbers));
  };
}

function numbersIn(element: unknown): number[] {
  if (typeof element === "number") return [element];
  const { data } = element as Tensor;
  return Array.from(data as Float64Array);
}

const PIPELINES: Record<string, [Dataset<unknown>, Wanted]> = {
  range: [range, "the same"],
  "range of another step": [Dataset.range(90, 0, -3), "the same"],
  from: [Dataset.from([..."abcdefg"]), "the same"],
  fromTensors: [Dataset.fromTensors({ x: 1 }), "the same"],
  fromTensorSlices: [Dataset.fromTensorSlices({ x: [1, 2, 3, 4], y: [5, 6, 7, 8] }), "the same"],
  map: [range.map((x) => x * 2), "the same"],
  "parallel map": [range.map((x) => Promise.resolve(x), { numParallelCalls: 4 }), "the same"],
  filter: [range.filter(isEven), "the same"],
  flatMap: [range.flatMap((x, { Dataset }) => Dataset.range(x % 3).map(() => 7)), "the same"],
  interleave: [
    range.interleave((x, { Dataset }) => Dataset.from([x, x + 1000]), { cycleLength: 3 }),
    "the same",
  ],
  "parallel interleave": [
    range.interleave((x, { Dataset }) => Dataset.from([x, x + 1000]), { numParallelCalls: 2 }),
    "the same",
  ],
  batch: [range.batch(7), each(60)],
  "batch of whole runs": [Dataset.range(64).map((x) => x + 1).batch(8), "the same"],
  paddedBatch: [range.map((x) => new Float64Array([x])).paddedBatch(4), each(60)],
  raggedBatch: [range.map((x) => new Float64Array([x])).raggedBatch(4).unbatch(), each(60)],
  unbatch: [range.batch(4).unbatch(), "the same"],
  rebatch: [range.batch(4).rebatch(6), each(60)],
  shuffle: [range.shuffle(20), "the same"],
  globalShuffle: [range.globalShuffle({ seed: 3 }), "the same"],
  "repeat before": [range.repeat(3).map((x) => x), "the same"],
  "repeat after": [range.map((x) => x).batch(5).repeat(3), each(60, 3)],
  "repeat of a repeat": [Dataset.range(10).repeat(2).filter(isEven).repeat(2), "the same"],
  "take of each worker": [range.take(4), someOf(60, 4)],
  "skip of each worker": [range.skip(2), someOf(60, 60 - 2 * WORKERS)],
  "shard of each worker": [range.shard(2, 0), someOf(60, 25)],
  cache: [range.cache().map((x) => x), "the same"],
  prefetch: [range.prefetch(4), "the same"],
  concatenate: [range.concatenate(Dataset.range(100, 120)), "the same"],
  "zip of equal lengths": [range.zip(Dataset.range(1000, 1060)), "the same"],
  "zip, unbalanced": [range.zip(Dataset.range(25)), "the same"],
  "zip, unbalanced and repeated": [Dataset.range(12).zip(range).repeat(4), "the same"],
  "zip with a counter": [Dataset.counter(5).zip(range.map((x) => x)), "the same"],
  enumerate: [range.enumerate().map(([, x]) => x), "the same"],
  "enumerate of each worker": [
    range.enumerate().map(([i]) => i),
    (numbers) => assertEquals(numbers.filter((i) => i === 0).length <= WORKERS, true),
  ],
  window: [range.window(4).flatMap((window) => window), "the same"],
  groupByWindow: [
    range.groupByWindow({
      key: (x) => x % 3,
      reduce: (_key, window) => window.batch(10),
      windowSize: 10,
    }),
    each(60),
  ],
  bucketBySequenceLength: [
    range.map((x) => new Float64Array([x])).bucketBySequenceLength({
      length: (row) => row.length,
      boundaries: [2],
      batchSizes: [4, 4],
    }),
    each(60),
  ],
  "scan of each worker": [
    range.scan(0, (count, x) => [count + 1, x]),
    "the same",
  ],
  takeWhile: [range.takeWhile((x) => x < 100), "the same"],
  unique: [range.unique(), "the same"],
  sampleFromDatasets: [
    Dataset.sampleFromDatasets([range, Dataset.range(100, 140)], { seed: 2 }),
    "the same",
  ],
  "sampleFromDatasets by weights": [
    Dataset.sampleFromDatasets([range, Dataset.range(100, 140)], {
      weights: Dataset.from([[0.5, 0.5]]).repeat(),
    }),
    "the same",
  ],
  chooseFromDatasets: [
    Dataset.chooseFromDatasets(
      [range, Dataset.range(100, 160)],
      Dataset.from([0, 1]).repeat(),
      { stopOnEmptyDataset: false },
    ),
    "the same",
  ],
  rejectionResample: [
    range.rejectionResample({ classOf: (x) => x % 2, targetDist: [1, 0], seed: 1 })
      .map((pair) => (pair as unknown[])[1]),
    (elements) => assert(elements.every((x) => isEven(x as number)), String(elements)),
  ],
  ignoreErrors: [
    range.map((x) => {
      if (x % 2 === 1) throw new Error("odd");
      return x;
    }).ignoreErrors({ logWarning: false }),
    "the same",
  ],
  assertCardinality: [range.assertCardinality(60), "the same"],
  pack: [
    range.map((x) => new Int32Array([x])).pack({ length: 4 }).map(() => 1),
    (packs) => assert(packs.length >= 15 && packs.length <= 15 + WORKERS, `${packs.length}`),
  ],
  withOptions: [range.map((x) => x).withOptions({ deterministic: false, seed: 4 }), "the same"],
  "sources in functions": [
    Dataset.range(5).flatMap((_x, { Dataset }) => Dataset.range(100, 110)),
    "the same",
  ],
};

const REFUSED: Record<string, Dataset<unknown>> = {
  fromGenerator: Dataset.fromGenerator(() => [1]),
  "zip of what has no numbers": range.filter(isEven).zip(Dataset.range(600).filter(isEven)),
  "zip of batches": range.batch(2).zip(range.batch(3)),
  "zip in a zip": range.zip(range.filter(isEven).zip(Dataset.random())),
  "counter alone": Dataset.counter(),
  "random alone": Dataset.random().batch(2),
  snapshot: range.snapshot("/tmp/none"),
  "distribute inside": range.distribute({ service: "ws://127.0.0.1:1" }).batch(2),
  "fromId inside": Dataset.fromId("ws://127.0.0.1:1", "d").batch(2),
};

async function startCluster(): Promise<LocalCluster> {
  return await LocalCluster.start({
    workers: WORKERS,
    carrier: "inline",
    runners: "inline",
    heartbeatMs: 100,
    clientRefreshMs: 5,
    logLevel: "off",
  });
}

for (const [name, [dataset, wanted]] of Object.entries(PIPELINES)) {
  Deno.test(`DYNAMIC over ${name}`, async () => {
    await using cluster = await startCluster();
    const elements = await Array.fromAsync(
      dataset.distribute({ service: cluster, processingMode: "DYNAMIC" }),
    );
    if (wanted !== "the same") return wanted(elements);
    const texts = (all: unknown[]) => all.map((x) => Deno.inspect(x, { depth: 9 })).sort();
    assertEquals(texts(elements), texts(await Array.fromAsync(dataset)));
  });
}

Deno.test("DYNAMIC refuses datasets that cannot be split", async () => {
  await using cluster = await startCluster();
  for (const [name, dataset] of Object.entries(REFUSED)) {
    const read = async () => {
      await using iterator = dataset.distribute({ service: cluster, processingMode: "DYNAMIC" })
        .iterator();
      await iterator.next();
    };
    const error = await assertRejects(read, LeatError);
    assertEquals(error.code, "unimplemented", name);
    assert(error.message.includes("Splitting is not implemented for"), error.message);
  }
});
