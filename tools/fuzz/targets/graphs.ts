/** Serialised datasets: graphs, and the texts of functions. */
import { LeatError } from "../../../core/error.ts";
import { analyzeFunction } from "../../../data/udf/free_names.ts";
import { SourceFunction } from "../../../data/udf/source_function.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { Dataset, tensor, udf } from "../../../mod.ts";
import { mutateBytes } from "../mutate_bytes.ts";
import { mutateTree, writeJson } from "../mutate_tree.ts";
import type { Target } from "../target.ts";

/** Maximum number of elements read from a graph. */
const STEPS_MAX = 20;
/** Set by a function that ran although it was only parsed. */
const MARK = "leatFuzzMark";

const FUNCTIONS = [
  "(x) => x + 1",
  "async (x, { random, index }) => await x + random.next() + index",
  "function* (x) { for (const y of [x, x]) yield y; }",
  "({ a, b = 2, ...rest }, [c] = []) => ({ a, b, c, ...rest })",
  `(x, y = Array.${MARK} = 1) => { class A { static { Array.${MARK} = 1; } } return x; }`,
  `(x) => x /* ) */ // ( \n`,
  "(x) => `${x}-->${`<!--${x}`}`.replace(/[)}(]/g, '')",
  "function named(x) { label: for (;;) { if (x) break label; } return this; }",
  "(x) => x < !-- x ? 1 : 0",
  "{ method(x) { return super.x; } }",
];

const text = (value: string) => new TextEncoder().encode(value);
const read = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

function datasets(): Dataset<unknown>[] {
  const numbers = Dataset.range(10);
  const sum = (x: number) => x + 1;
  return [
    numbers.map(sum, { numParallelCalls: 2 }).batch(3).prefetch(2),
    numbers.shuffle(5, { seed: 1n }).filter((x) => x > 3).take(5).skip(1).repeat(2),
    Dataset.from([{ a: tensor([1, 2]), b: tensor(["x", "y"]) }]).unbatch(),
    Dataset.zip([numbers, Dataset.range(3).concatenate(numbers)]).cache().enumerate(),
    numbers.window(3, { shift: 1 }).flatMap((window) => window as Dataset<number>),
    numbers.scan(0, (sum, x) => [sum + x, x]).takeWhile((x) => x < 9),
    Dataset.textLines(["/nowhere/a", "/nowhere/b"]).shard(2, 0),
    numbers.map(udf("data:text/javascript,export const f=(x)=>x", "f")),
    Dataset.sampleFromDatasets([numbers, numbers], { weights: [0.3, 0.7], seed: 3n }),
    numbers.map((x) => [x, x]).paddedBatch(2).rebatch(3).withOptions({ seed: 4n }),
    numbers.distribute({ service: "ws://127.0.0.1:1", processingMode: "DETERMINISTIC" }),
  ] as Dataset<unknown>[];
}

/** Deserialises a graph, and does everything with it that needs no trust. */
async function runGraph(input: Uint8Array): Promise<void> {
  const dataset = Dataset.deserialize(input);
  void dataset.elementSpec;
  dataset.cardinality();
  String(dataset.explain());
  const bytes = dataset.serialize();
  if (Dataset.deserialize(bytes).fingerprint() !== dataset.fingerprint()) {
    throw new Error("a graph that is written again is another one");
  }
  await using iterator = openIterator(dataset.node, { seed: 1n });
  for (let step = 0; step < STEPS_MAX; step++) {
    const { done } = await iterator.next();
    if (done) break;
  }
  await iterator.save().catch((error) => {
    if (LeatError.from(error).code !== "failed_precondition") throw error;
  });
}

/**
 * Checks a text, and evaluates it only if it passes. Then it must be one function, and its code may not
 * have run.
 */
function runFunction(input: Uint8Array): void {
  const { source } = analyzeFunction(read(input));
  const scope = Array as unknown as Record<string, unknown>;
  delete scope[MARK];
  const fn = new SourceFunction(source).load({});
  if (MARK in scope) throw new Error("the text ran when it was evaluated");
  const again = analyzeFunction(Function.prototype.toString.call(fn)).source;
  if (analyzeFunction(again).source !== again) {
    throw new Error("its text changes with each reading");
  }
}

/** Targets that read graphs and functions. */
export const GRAPH_TARGETS: Readonly<Record<string, Target>> = {
  graph: {
    help: "serialised datasets, which are read back, looked at and iterated without trust",
    open: () => {
      const [first, ...others] = datasets().map((dataset) => dataset.serialize());
      const parts = [first!, ...others].map((seed) => JSON.parse(read(seed)).root);
      return {
        seeds: [first!, ...others],
        mutate(input, random, seeds) {
          if (random.chance(0.1)) return mutateBytes(input, random, seeds);
          const tree = mutateTree(JSON.parse(read(input)), random, [...parts, ...FUNCTIONS]);
          return writeJson(tree);
        },
        run: runGraph,
      };
    },
  },
  function: {
    help: "texts of functions, which are checked, and evaluated if they pass",
    open: () => {
      const [first, ...others] = FUNCTIONS.map(text);
      return { seeds: [first!, ...others], run: runFunction };
    },
  },
};
