/**
 * Facts: pipelines as lists of steps, and what came of them.
 */
import {
  Dataset,
  type ElementSpec,
  LeatError,
  RaggedTensor,
  Tensor,
  tensor,
  TensorSpec,
  UNKNOWN_CARDINALITY,
} from "../../../mod.ts";
import {
  type Any,
  DATASET_FUNCTIONS,
  ELEMENT_FUNCTIONS,
  FOLDS,
  KEYS,
  PREDICATES,
  REDUCERS,
  REDUCES,
  SCANS,
  WINDOW_SIZES,
} from "./functions.ts";

/** An operator's name and its arguments. Tuples are `{"tuple": […]}`, since lists are tensors. */
export type Step = readonly [name: string, ...args: Any[]];

/** What came of a pipeline. */
export interface Answer {
  /** The error of making it, or of the value it ends in. */
  readonly refused?: string;
  readonly value?: unknown;
  readonly cardinality?: number | "infinite" | "unknown";
  /** Of the elements' leaves; `null` for what is not known. */
  readonly shapes?: unknown;
  /** Elements, and errors by their codes. */
  readonly elements?: readonly unknown[];
}

/** A pipeline and what tf.data makes of it. */
export interface Fact {
  readonly pipeline: readonly Step[];
  readonly tf: Answer;
  /** What Leat answers where that is meant to be something else, and why. */
  readonly leat?: Answer;
  readonly why?: string;
  /** True where no element was asked for. */
  readonly unread?: boolean;
}

const OUTCOMES_MAX = 60;
/** One after the other: then it is taken never to end. */
const ERRORS_MAX = 8;

/** What Leat makes of a fact's pipeline. */
export async function answerOf({ pipeline, unread }: Fact): Promise<Answer> {
  try {
    const last = pipeline.at(-1)!;
    if (last[0] in ENDINGS) {
      const value = await ENDINGS[last[0]]!(build(pipeline.slice(0, -1)), ...last.slice(1));
      return { value: await encode(value) };
    }
    const dataset = build(pipeline);
    const cardinality = namedCardinality(dataset.cardinality());
    if (unread) return { cardinality };
    const shapes = shapesOf(dataset.elementSpec);
    return { cardinality, shapes, elements: await outcomesOf(dataset) };
  } catch (error) {
    return { refused: LeatError.from(error).code };
  } finally {
    for (const folder of folders.splice(0)) Deno.removeSync(folder, { recursive: true });
  }
}

/** Last steps that make no dataset. */
const ENDINGS: Record<string, (dataset: Dataset<Any>, ...args: Any[]) => Promise<unknown>> = {
  reduce: (dataset, initial, fn) => dataset.reduce(initial, FOLDS[fn]!),
  getSingleElement: (dataset) => dataset.getSingleElement(),
  at: (dataset, index) => dataset.at(index),
};

const SOURCES: Record<string, (...args: Any[]) => Dataset<Any>> = {
  range: (...args) => (Dataset.range as Any)(...args),
  counter: (...args) => Dataset.counter(...args),
  fromTensors: (value) => Dataset.fromTensors(decode(value)),
  fromTensorSlices: (value) => Dataset.fromTensorSlices(decode(value)),
  zipAll: (parts) =>
    Dataset.zip(
      Array.isArray(parts) ? parts.map(build) : Object.fromEntries(
        Object.entries(parts as Record<string, Step[]>).map(([name, part]) => [name, build(part)]),
      ),
    ),
  chooseFrom: (parts, choice, options) =>
    Dataset.chooseFromDatasets(parts.map(build), build(choice), options),
  textLines: (contents, options) => Dataset.textLines(written(contents), options),
  fixedLengthRecords: (contents, options) => Dataset.fixedLengthRecords(written(contents), options),
  tfRecords: (contents) => Dataset.tfRecords(written(contents)),
  csv: (contents, options) => Dataset.csv(written(contents), { header: false, ...options }),
  sampleFrom: (parts, options) => Dataset.sampleFromDatasets(parts.map(build), options),
};

/** What a fact's files are in, until it is answered. */
const folders: string[] = [];

/** Paths of files with these contents; of none where there are no contents. */
function written(contents: readonly (string | null)[]): string[] {
  const folder = Deno.makeTempDirSync();
  folders.push(folder);
  return contents.map((text, i) => {
    if (text !== null) Deno.writeTextFileSync(`${folder}/${i}.txt`, text);
    return `${folder}/${i}.txt`;
  });
}

/** Operators whose arguments are functions or datasets. */
const OPERATORS: Record<string, (dataset: Dataset<Any>, ...args: Any[]) => Dataset<Any>> = {
  map: (dataset, fn, options) => dataset.map(ELEMENT_FUNCTIONS[fn]!, options),
  filter: (dataset, fn) => dataset.filter(PREDICATES[fn]!),
  takeWhile: (dataset, fn) => dataset.takeWhile(PREDICATES[fn]!),
  flatMap: (dataset, fn) => dataset.flatMap(DATASET_FUNCTIONS[fn]!),
  interleave: (dataset, fn, options) => dataset.interleave(DATASET_FUNCTIONS[fn]!, options),
  scan: (dataset, initial, fn) => dataset.scan(decode(initial), SCANS[fn]!),
  zip: (dataset, other) => dataset.zip(build(other)),
  concatenate: (dataset, other) => dataset.concatenate(build(other)),
  groupByWindow: (dataset, { key, reduce, windowSize }) =>
    dataset.groupByWindow({
      key: KEYS[key]!,
      reduce: REDUCES[reduce]!,
      windowSize: WINDOW_SIZES[windowSize] ?? windowSize,
    }),
  groupByReducer: (dataset, { key, reducer }) =>
    dataset.groupByReducer({ key: KEYS[key]!, ...REDUCERS[reducer]! }),
  bucketBySequenceLength: (dataset, { length, ...how }) =>
    dataset.bucketBySequenceLength({ length: KEYS[length]!, ...padding(how) }),
  paddedBatch: (dataset, size, how = {}) => dataset.paddedBatch(size, padding(how)),
  assertCardinality: (dataset, expected) =>
    dataset.assertCardinality(expected === "infinite" ? Infinity : expected),
};

/** The dataset of a pipeline. */
export function build(steps: readonly Step[]): Dataset<Any> {
  const [[source, ...sourceArgs], ...rest] = steps as [Step, ...Step[]];
  let dataset = SOURCES[source]!(...sourceArgs);
  for (const [name, ...args] of rest) {
    const apply = OPERATORS[name];
    dataset = apply === undefined ? (dataset as Any)[name](...args) : apply(dataset, ...args);
  }
  return dataset;
}

function padding({ paddedShapes, paddingValues, ...how }: Any): Any {
  return {
    ...how,
    ...(paddedShapes === undefined ? {} : { paddedShapes: untuple(paddedShapes) }),
    ...(paddingValues === undefined ? {} : { paddingValues: untuple(paddingValues) }),
  };
}

/** Values of `fromTensors` and its kin: lists are tensors, `{"dtype", "of"}` those of a dtype. */
function decode(value: Any): Any {
  return Array.isArray(value) ? tensor(value) : untuple(value, decode);
}

function untuple(value: Any, each: (part: Any) => Any = (part) => untuple(part)): Any {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  if ("tuple" in value) return value.tuple.map(each);
  if ("dtype" in value) return tensor(value.of, { dtype: value.dtype });
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, each(part)]));
}

async function outcomesOf(dataset: Dataset<unknown>): Promise<unknown[]> {
  const outcomes: unknown[] = [];
  await using iterator = dataset.iterator();
  let errors = 0;
  while (outcomes.length < OUTCOMES_MAX && errors < ERRORS_MAX) {
    try {
      const { done, value } = await iterator.next();
      if (done) break;
      outcomes.push(await encode(value));
      errors = 0;
    } catch (error) {
      outcomes.push({ error: LeatError.from(error).code });
      errors++;
    }
  }
  return outcomes;
}

async function encode(value: unknown): Promise<unknown> {
  if (value instanceof Dataset) return { dataset: await outcomesOf(value) };
  if (value instanceof RaggedTensor) return { ragged: plain(value.toArray()) };
  if (value instanceof Tensor) return plain(value.toArray());
  if (Array.isArray(value)) return { tuple: await Promise.all(value.map(encode)) };
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return plain(value);
  const parts = Object.entries(value).map(async ([key, part]) => [key, await encode(part)]);
  return Object.fromEntries(await Promise.all(parts) as [string, unknown][]);
}

/** As `record.py` writes values: byte strings as text, and all numbers as numbers. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  if (ArrayBuffer.isView(value)) return [...value as Float64Array];
  if (typeof value === "bigint") return Number(value);
  return value === 0 ? 0 : value; // -0 is 0
}

function namedCardinality(cardinality: number): number | "infinite" | "unknown" {
  if (cardinality === Infinity) return "infinite";
  return cardinality === UNKNOWN_CARDINALITY ? "unknown" : cardinality;
}

function shapesOf(spec: ElementSpec): unknown {
  if (spec === undefined) return undefined;
  if (spec instanceof TensorSpec) return [...spec.shape];
  if (Array.isArray(spec)) return { tuple: spec.map(shapesOf) };
  return Object.fromEntries(
    Object.entries(spec as Record<string, ElementSpec>).map(([key, at]) => [key, shapesOf(at)]),
  );
}
