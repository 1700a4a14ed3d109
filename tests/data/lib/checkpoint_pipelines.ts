/** Pipelines for checkpoint tests: at least one for each kind of iterator state. */
import { openIterator } from "../../../data/dataset_iterator.ts";
import { Dataset, LeatError } from "../../../mod.ts";
import { MemoryHost } from "./memory_host.ts";
import { outcomesOf } from "./outcomes.ts";

/** The seed of all of them. */
export const SEED = 11n;
/** More elements than any of them gives. */
export const ELEMENTS_MAX = 60;

export const range = () => Dataset.range(12) as Dataset<number>;
const generated = () =>
  Dataset.fromGenerator(function* () {
    for (let i = 0; i < 12; i++) yield i;
  });

/** Throws for every third element from the second on. */
function failing(x: number): number {
  if (x % 3 === 1) throw new LeatError("data_loss", `no ${x}`);
  return x;
}

const numbered = (name: string) =>
  Array.from({ length: 4 }, (_, i) => i === 2 ? "{\n" : `"${name}${i}"\n`).join("");

/** The files to read. */
export const FILES = {
  "/lines/a": "a0\na1\na2\na3\n",
  "/lines/b": "b0\nb1\nb2\nb3\n",
  "/lines/c": "c0\nc1\nc2\nc3\n",
  "/json/a": numbered("a"),
  "/json/b": numbered("b"),
  "/csv/a": "x,y\n1,2\n3,4\n5,6\n7,8\n",
  "/csv/b": "x,y\n9,10\n11,12\n",
};
const LINES = ["/lines/a", "/lines/b", "/lines/c"];
const JSON_LINES = ["/json/a", "/json/b"];
const CSV = ["/csv/a", "/csv/b"];

/** Written before it is read. */
const CACHED = "/cached";
const cached = () => generated().cache(CACHED);
const snapshotted = () => range().snapshot("/snapshot", { shardFunc: (x) => x % 2 });

const pieces = () => range().map((x) => new Int32Array(x % 4 + 1).fill(x));

/** By name. */
export const PIPELINES: Record<string, () => Dataset<unknown> | Promise<Dataset<unknown>>> = {
  range,
  generated,
  map: () => range().map((x, { index, random }) => x + index + random.int(5)),
  parallelMap: () =>
    range().map(async (x, { index }) => {
      await Promise.resolve();
      return x + index;
    }, { numParallelCalls: 3 }),
  filter: () => range().filter((x) => x % 3 > 0),
  flatMap: () => range().flatMap((x, { Dataset }) => Dataset.range(x)),
  interleave: () =>
    range().interleave((x, { Dataset }) => Dataset.range(x), { cycleLength: 3, blockLength: 2 }),
  parallelInterleave: () =>
    range().interleave((x, { Dataset }) => Dataset.range(x), {
      cycleLength: 3,
      blockLength: 2,
      numParallelCalls: 2,
    }),
  groupByWindow: () =>
    range().groupByWindow({
      key: (x) => x % 2,
      reduce: (_, window) => window.batch(2),
      windowSize: 3,
    }),
  window: () => range().window(3).flatMap((window) => window),
  scan: () => range().scan(0, (sum, x) => [sum + x, sum + x] as [number, number]),
  shuffle: () => range().shuffle(5),
  shuffleByContent: () => generated().shuffle(4),
  repeat: () => range().take(4).repeat(3),
  cache: () => range().cache().repeat(2),
  skip: () => range().skip(3),
  shard: () => range().shard(3, 1),
  zip: () => range().zip(range().skip(1)),
  enumerate: () => range().enumerate(5),
  concatenate: () => range().concatenate(range()),
  prefetch: () => generated().prefetch(3),
  unbatch: () => range().batch(4).unbatch(),
  rebatch: () => range().batch(4).rebatch(3),
  unique: () => range().map((x) => x % 5).unique(),
  sample: () => Dataset.sampleFromDatasets([range(), range().skip(2)], { weights: [0.5, 0.5] }),
  choose: () => Dataset.chooseFromDatasets([range(), range()], range().map((x) => x % 2)),
  ignoreErrors: () =>
    range().map((x) => {
      if (x % 4 === 1) throw new LeatError("data_loss", `no ${x}`);
      return x;
    }).ignoreErrors({ maxErrors: 9 }),
  takeWhile: () => range().takeWhile((x) => x < 9),
  random: () => Dataset.random().take(9),
  globalShuffle: () => range().globalShuffle(),
  cacheWithin: () => range().flatMap((x, { Dataset }) => Dataset.range(x).cache().repeat(2)),
  cacheComplete: () => range().take(3).cache().repeat(3),
  ignoreErrorsUpToTheEnd: () =>
    range().map((x) => failing(x < 2 ? x : 0)).ignoreErrors({ maxFraction: 0.01 }),
  errors: () => generated().map(failing).prefetch(3),
  errorsInParallel: () =>
    generated().map(async (x) => {
      await Promise.resolve();
      return failing(x);
    }, { numParallelCalls: 3 }),
  sampleByDataset: () =>
    Dataset.sampleFromDatasets([range(), range().skip(2)], {
      weights: range().map((x) => [x, 12 - x]),
    }),
  groupByReducer: () =>
    generated().groupByReducer({
      key: (x) => x % 2,
      init: () => 0,
      reduce: (sum, x) => sum + x,
      finalize: (sum) => sum,
    }),
  rejectionResample: () =>
    range().rejectionResample({ classOf: (x) => x % 2, targetDist: [0.3, 0.7], seed: 3 }),
  pack: () => pieces().pack({ length: 5 }),
  packGenerated: () => generated().map((x) => new Int32Array(x % 4 + 1)).pack({ length: 5 }),
  packSplit: () => pieces().pack({ length: 3, overflow: "split", maxOpenBins: 2 }),
  textLines: () => Dataset.textLines(LINES),
  textLinesInParallel: () => Dataset.textLines(LINES, { numParallelReads: 2 }),
  listedLines: () => Dataset.textLines(Dataset.listFiles("/lines/*")),
  jsonLines: () => Dataset.jsonLines(JSON_LINES),
  jsonLinesInParallel: () => Dataset.jsonLines(JSON_LINES, { numParallelReads: 2 }),
  csv: () => Dataset.csv(CSV),
  csvInParallel: () => Dataset.csv(CSV, { numParallelReads: 2, header: false }),
  csvUnquoted: () => Dataset.csv(CSV, { useQuoteDelim: false }),
  fixedLengthRecords: () => Dataset.fixedLengthRecords(LINES, { recordBytes: 3 }),
  wholeFiles: () => Dataset.wav(LINES),
  load: () => Dataset.load(CACHED, { wait: true }),
  cacheReading: cached,
  snapshotReading: snapshotted,
  cacheWriting: () => generated().cache("/new"),
  snapshotWriting: () => range().snapshot("/new", { shardFunc: (x) => x % 2 }),
};

/** Opens an iterator with the common seed. */
export const open = (dataset: Dataset<unknown>, host?: MemoryHost) =>
  openIterator(dataset.node, { seed: SEED, ...(host && { host }) });

/**
 * The files, and stored datasets for some pipelines. Names of written files are fixed, so that
 * files can be compared.
 */
export async function prepared(): Promise<MemoryHost> {
  const host = new MemoryHost(FILES);
  host.entropy64 = () => SEED;
  for (const dataset of [cached(), snapshotted()]) await outcomesOf(open(dataset, host));
  return host;
}
