/**
 * The functions that facts name, as `record.py` has them.
 */
import { Dataset, LeatError, Tensor, tensor } from "../../../mod.ts";

// deno-lint-ignore no-explicit-any -- Facts have elements of every structure.
export type Any = any;

const modulo = (x: number, n: number) => ((x % n) + n) % n;
const filled = (x: number) => new Float64Array(x).fill(x);
/** The numbers of a vector, which is a typed array where a function made it. */
const dataOf = (x: Any) => x instanceof Tensor ? x.data as Any : x;

function checked<T>(condition: boolean, x: T): T {
  if (!condition) throw new LeatError("invalid_argument", "refused");
  return x;
}

export const ELEMENT_FUNCTIONS: Record<string, (x: Any) => unknown> = {
  identity: (x) => x,
  double: (x) => x * 2,
  square: (x) => x * x,
  increment: (x) => x + 1,
  negate: (x) => -x,
  modulo3: (x) => modulo(x, 3),
  half: (x) => Math.floor(x / 2),
  pair: (x) => [x, x * x],
  record: (x) => ({ x, y: x * x }),
  nested: (x) => ({ a: x, b: [x + 1, { c: x + 2 }] }),
  first: (x) => x[0],
  second: (x) => x[1],
  sum: (x) => x[0] + x[1],
  filled,
  three: (x) => tensor([x, x + 1, x + 2]),
  matrix: (x) => new Tensor("float64", [x, 2], new Float64Array(2 * x).fill(x)),
  fixedAndFilled: (x) => [x, filled(x)],
  text: (x) => String(x),
  total: (x) => [...dataOf(x)].reduce((sum, at) => sum + at, 0),
  twin: (x) => [x, x],
  boxed: (x) => ({ v: x }),
  unboxed: (x) => x.v,
  swap: (x) => [x[1], x[0]],
  loud: (x) => x + "!",
  textLength: (x) => x.length,
  vectorLength: (x) => dataOf(x).length,
  reversed: (x) => tensor(dataOf(x).toReversed()),
  failOnEmpty: (x) => checked(dataOf(x).length > 0, x),
  failOn2: (x) => checked(x !== 2, x),
  failOnOdd: (x) => checked(x % 2 === 0, x),
  failFrom3: (x) => checked(x < 3, x),
};

export const PREDICATES: Record<string, (x: Any) => boolean> = {
  even: (x) => x % 2 === 0,
  odd: (x) => modulo(x, 2) === 1,
  under3: (x) => x < 3,
  over1: (x) => x > 1,
  all: () => true,
  none: () => false,
  firstEven: (x) => x[0] % 2 === 0,
  boxedEven: (x) => x.v % 2 === 0,
  short: (x) => dataOf(x).length < 3,
  brief: (x) => x.length < 3,
  failOn2: (x) => checked(x !== 2, true),
};

export const DATASET_FUNCTIONS: Record<string, (x: Any) => Dataset<unknown>> = {
  upTo: (x) => Dataset.range(x),
  times: (x) => Dataset.from([x]).repeat(x),
  twice: (x) => Dataset.from([x]).repeat(2),
  from10: (x) => Dataset.range(10 * x, 10 * x + 3),
  slices: (x) => Dataset.fromTensorSlices(x),
  batched: (x) => Dataset.from([x]).repeat(3).batch(2),
  nothing: (x) => Dataset.from([x]).take(0),
  failing: (x) => Dataset.range(x).map(ELEMENT_FUNCTIONS.failOn2!),
  failOn2: (x) => Dataset.range(checked(x !== 2, x)),
  upToTwice: (x) => Dataset.range(x).flatMap((y) => Dataset.range(y)),
  window: (x) => x,
  windowBatch: (x) => x.batch(10),
  windowZipBatch: (x) => Dataset.zip(x).batch(10),
  windowTwice: (x) => x.concatenate(x),
};

export const KEYS: Record<string, (x: Any) => number> = {
  modulo2: (x) => modulo(x, 2),
  modulo3: (x) => modulo(x, 3),
  modulo10: (x) => modulo(x, 10),
  identity: (x) => x,
  negate: (x) => -x,
  zero: () => 0,
  failOn2: (x) => checked(x !== 2, modulo(x, 2)),
  size: (x) => dataOf(x).length,
  first: (x) => x[0],
  boxed: (x) => x.v,
  textLength: (x) => x.length,
};

export const REDUCES: Record<string, (key: number, window: Dataset<Any>) => Dataset<unknown>> = {
  batch: (_key, window) => window.batch(4),
  keyed: (key, window) => window.batch(100).map((x) => [key, x]),
  same: (_key, window) => window,
  twice: (_key, window) => window.concatenate(window),
  count: (_key, window) => window.batch(100).map((x: Any) => x.size),
  nothing: (_key, window) => window.take(0),
  enumerated: (key, window) => window.enumerate(key),
  padded: (_key, window) => window.paddedBatch(100),
  failOnKey1: (key, window) => window.take(checked(key !== 1, 100)),
};

export const WINDOW_SIZES: Record<string, (key: number) => number> = {
  key: (key) => key,
  keyAndOne: (key) => key + 1,
  twiceKeyAndTwo: (key) => (key + 1) * 2,
};

export const SCANS: Record<string, (state: Any, x: Any) => [unknown, unknown]> = {
  runningSum: (state, x) => [state + x, state + x],
  fibonacci: (state) => [[state[1], state[0] + state[1]], state[0]],
  failOn2: (state, x) => [state + checked(x !== 2, x), state + x],
  pairs: (state, x) => [x, [state, x]],
  counted: (state, x) => [state + 1, [state, x]],
};

export const FOLDS: Record<string, (state: Any, x: Any) => unknown> = {
  runningSum: (state, x) => state + x,
  count: (state) => state + 1,
};

interface Reducer {
  readonly init: (key: number) => unknown;
  readonly reduce: (state: Any, x: Any) => unknown;
  readonly finalize?: (state: Any) => unknown;
}

export const REDUCERS: Record<string, Reducer> = {
  sum: { init: () => 0, reduce: (state, x) => state + x },
  mean: {
    init: (key) => [key, 0, 0],
    reduce: ([key, total, count], x) => [key, total + x, count + 1],
    finalize: ([key, total, count]) => [key, Math.floor(total / count)],
  },
};
