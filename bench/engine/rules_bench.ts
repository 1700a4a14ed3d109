/**
 * Compares a pipeline without any rule of static optimisation with the same pipeline with one rule, for
 * each rule. One case has several rules.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parquetWriteBuffer } from "hyparquet-writer";
import { cast, Dataset, oneHot, type OptimizationRules, Tensor } from "../../mod.ts";
import { RULE_NAMES } from "../../data/optimizer/options.ts";
import { type Load, pipelinedLoad } from "../bare/load.ts";
import type { Bench } from "../lib/bench.ts";

interface Case {
  /** The rules that are on. */
  readonly rules: readonly (keyof OptimizationRules)[];
  readonly what: string;
  /** `file`: the Parquet file of `writeTable()`. */
  readonly pipeline: (file: string) => Dataset<unknown>;
  /** Elements of the source in a pass. */
  readonly elements: number;
  /** How long the consumer works on an element, in ms. Default 0. */
  readonly stepMs?: number;
  /** The table counts thousands of elements, not millions. */
  readonly isSlow?: true;
  readonly floor: number;
}

const ELEMENTS = 1 << 18;

const numbers = () => Dataset.range(ELEMENTS);

/** Returns a dataset whose elements each wait for 2 ms. */
function waiting(count: number): Dataset<number> {
  return Dataset.range(count).map(async (x) => {
    await sleep(2);
    return x;
  });
}

const TABLE_ROWS = 4_000;

/** Writes a Parquet file with 20 columns of numbers. */
async function writeTable(): Promise<{ file: string; remove: () => Promise<void> }> {
  const folder = await Deno.makeTempDir();
  const columnData = Array.from({ length: 20 }, (_, column) => ({
    name: `c${column}`,
    data: Float64Array.from({ length: TABLE_ROWS }, (_, row) => row * column),
  }));
  const file = `${folder}/table.parquet`;
  await Deno.writeFile(file, new Uint8Array(parquetWriteBuffer({ columnData })));
  return { file, remove: () => Deno.remove(folder, { recursive: true }) };
}

const CASES: readonly Case[] = [
  {
    rules: ["mapFusion"],
    what: "three maps",
    pipeline: () => numbers().map((x) => x + 1).map((x) => x * 3).map((x) => x - 2).batch(1024),
    elements: ELEMENTS,
    floor: 0.9,
  },
  {
    rules: ["filterFusion"],
    what: "three filters",
    pipeline: () =>
      numbers().filter((x) => x % 3 > 0).filter((x) => x % 5 > 0).filter((x) => x % 7 > 0)
        .batch(1024),
    elements: ELEMENTS,
    floor: 0.9,
  },
  {
    rules: ["mapAndFilterFusion"],
    what: "map, filter, map",
    pipeline: () =>
      numbers().map((x) => x * 2 + 1).filter((x) => x % 3 > 0).map((x) => x * 0.5).batch(1024),
    elements: ELEMENTS,
    floor: 0.9,
  },
  {
    rules: ["mapAndBatchFusion"],
    what: "map to floats, batch",
    pipeline: () => numbers().map((x) => x * 0.5).batch(1024),
    elements: ELEMENTS,
    floor: 1.2,
  },
  {
    rules: ["mapFusion", "filterFusion", "mapAndFilterFusion", "mapAndBatchFusion"],
    what: "map, filter, filter, map, batch",
    pipeline: () =>
      numbers().map((x) => x * 2 + 1).filter((x) => x % 3 > 0).filter((x) => x % 5 > 0)
        .map((x) => x * 0.5).batch(1024),
    elements: ELEMENTS,
    floor: 1.2,
  },
  {
    rules: ["noOpElimination"],
    what: "skip(0), take(-1)",
    pipeline: () => numbers().skip(0).take(-1).skip(0).batch(1024),
    elements: ELEMENTS,
    floor: 0.8,
  },
  {
    rules: ["deadTransformationElimination"],
    what: "unique, unique",
    pipeline: () => numbers().take(20_000).unique().unique().batch(1024),
    elements: 20_000,
    floor: 1.1,
  },
  {
    rules: ["mapVectorization"],
    what: "one-hot rows of 8 floats, batch(256)",
    pipeline: () =>
      Dataset.fromTensorSlices(new Tensor("float32", [20_000, 8], new Float32Array(160_000)))
        .map((x) => oneHot(cast(x as Tensor, "int32"), 4), { batchable: true }).batch(256),
    elements: 20_000,
    floor: 2,
  },
  {
    rules: ["groupAndBatchFusion"],
    what: "buckets of 8 rows",
    pipeline: () =>
      Dataset.range(20_000).map((x) => new Int32Array(4 + x % 8)).bucketBySequenceLength({
        ...{ length: (x) => x.length, boundaries: [6, 8, 10], batchSizes: [8, 8, 8, 8] },
      }),
    elements: 20_000,
    floor: 1,
  },
  {
    rules: ["projectionPushdown"],
    what: "select 1 of 20 columns of Parquet",
    pipeline: (file) => Dataset.parquet<{ c3: number }>(file).select(["c3"]).batch(1024),
    elements: TABLE_ROWS,
    floor: 2,
  },
  {
    rules: ["shuffleAndRepeatFusion"],
    what: "shuffle, repeat, and a training step",
    pipeline: () => waiting(40).shuffle(40).repeat(3),
    elements: 120,
    stepMs: 2,
    isSlow: true,
    floor: 1,
  },
  {
    rules: ["prefetchInjection"],
    what: "a function that waits, and a training step",
    pipeline: () => waiting(100),
    elements: 100,
    stepMs: 2,
    isSlow: true,
    floor: 1.2,
  },
  {
    rules: ["mapParallelization"],
    what: "a function that waits",
    pipeline: () => waiting(200),
    elements: 200,
    isSlow: true,
    floor: 2,
  },
];

async function open(
  { pipeline, elements, stepMs }: Case,
  optimizations: OptimizationRules | false,
): Promise<Load> {
  const { file, remove } = await writeTable();
  const dataset = pipeline(file).withOptions({ optimizations, seed: 1 });
  const pass = async () => {
    for await (const _ of dataset) if (stepMs !== undefined) await sleep(stepMs);
    return elements;
  };
  return pipelinedLoad(1, pass, remove);
}

/** Enables these rules and no others. */
function only(names: Case["rules"]): OptimizationRules {
  const none = Object.fromEntries(RULE_NAMES.map((name) => [name, false]));
  return { ...none, ...Object.fromEntries(names.map((name) => [name, true])) };
}

export const benches: Bench[] = CASES.map((bench) => ({
  name: `rule ${bench.rules.join(", ")}: ${bench.what}`,
  unit: bench.isSlow ? "k elements/s" : "M elements/s",
  scale: bench.isSlow ? 1e-3 : 1e-6,
  floor: bench.floor,
  bare: () => open(bench, false),
  leat: () => open(bench, only(bench.rules)),
}));
