/**
 * Random pipelines of operators, each with its expected result: how often each value occurs. It is
 * computed over arrays by the definitions of the operators, without the engine.
 */
import { Dataset } from "../../data/dataset.ts";
import { Tensor } from "../../core/tensor.ts";
import type { SimRandom } from "../engine/random.ts";

/** Maximum number of operators in a pipeline, including its source. */
const DEPTH_MAX = 6;
/** Numbers of elements of a source: none, one, fewer than workers, more. */
const SIZES: [number, ...number[]] = [0, 1, 2, 7, 30];
/** Maximum number of values. Operators that make more values are added only to short pipelines. */
const VALUES_MAX = 150;

/** How often each value occurs. */
export type Bag = ReadonlyMap<number, number>;

/** A pipeline with its expected values. */
export interface RandomPipeline {
  /** Its operators, on one line. */
  readonly text: string;
  readonly make: () => Dataset<unknown>;
  /** The values of a complete run, with batches flattened. */
  readonly bag: Bag;
  /** The values if operators that count elements (`take`, `skip`, `zip`) dropped nothing. */
  readonly pool: Bag;
  /**
   * Whether the values stay the same when several workers share the sources. False after an operator
   * that counts elements.
   */
  readonly isDivisible: boolean;
  /**
   * Whether a complete run gives exactly the bag. False if random numbers or the order of elements decide
   * which elements are dropped.
   */
  readonly isExact: boolean;
}

interface Draft {
  readonly text: string;
  readonly make: () => Dataset<unknown>;
  readonly values: readonly number[];
  readonly pool: readonly number[];
  readonly isDivisible: boolean;
  /** Whether `values` is in the order of a run. */
  readonly isOrdered: boolean;
  readonly isExact: boolean;
  /** Whether elements are still numbers, not batches. */
  readonly isFlat: boolean;
}

export function drawPipeline(rng: SimRandom): RandomPipeline {
  let draft = drawSource(rng);
  for (let operators = rng.int(DEPTH_MAX); operators > 0; operators--) {
    const kinds = Object.values(OPERATORS).filter(({ fits }) => fits(draft));
    draft = kinds[rng.int(kinds.length)]!.after(draft, rng);
  }
  const { text, make, values, pool, isDivisible, isExact } = draft;
  return { text, make, bag: bagOf(values), pool: bagOf(pool), isDivisible, isExact };
}

/** Counts the values. */
export function bagOf(values: readonly number[]): Bag {
  const bag = new Map<number, number>();
  for (const value of values) bag.set(value, (bag.get(value) ?? 0) + 1);
  return bag;
}

/** Returns the values of an element: a number, or the rows of a batch. */
export function valuesOf(element: unknown): number[] {
  if (typeof element === "number") return [element];
  if (element instanceof Tensor) return (element.toArray() as unknown[]).flatMap(valuesOf);
  if (Array.isArray(element)) return element.flatMap(valuesOf);
  if (typeof element === "object" && element !== null) {
    return Object.values(element).flatMap(valuesOf);
  }
  throw new TypeError(`${typeof element} is no element of a random pipeline`);
}

function drawSource(rng: SimRandom): Draft {
  const size = rng.pick(SIZES);
  const first = rng.int(3) * 1_000;
  const values = Array.from({ length: size }, (_, i) => first + i);
  const isList = rng.chance(0.3) && size > 0;
  return {
    text: `${isList ? "list" : "range"}(${first}, ${first + size})`,
    make: () => isList ? Dataset.from(values) : Dataset.range(first, first + size),
    ...both(() => values),
    isDivisible: true,
    isOrdered: true,
    isExact: true,
    isFlat: true,
  };
}

/** Computes the values and the pool with one function. */
function both(make: (of: "values" | "pool") => readonly number[]) {
  return { values: make("values"), pool: make("pool") };
}

interface Operator {
  fits(draft: Draft): boolean;
  after(draft: Draft, rng: SimRandom): Draft;
}

/** Makes a flat pipeline, whose elements are numbers. */
function numbersOf({ make }: Draft): Dataset<number> {
  return make() as Dataset<number>;
}

const isFlat = ({ isFlat }: Draft) => isFlat;
const isSmall = ({ isFlat, pool }: Draft) => isFlat && pool.length <= VALUES_MAX / 3;

const OPERATORS: Readonly<Record<string, Operator>> = {
  map: {
    fits: isFlat,
    after: (draft, rng) => {
      const by = 1 + rng.int(5);
      return {
        ...draft,
        text: `${draft.text}.map(x + ${by})`,
        make: () => numbersOf(draft).map((x, { by }) => x + by, { captures: { by } }),
        ...both((of) => draft[of].map((x) => x + by)),
      };
    },
  },
  filter: {
    fits: isFlat,
    after: (draft, rng) => {
      const by = 2 + rng.int(4);
      return {
        ...draft,
        text: `${draft.text}.filter(x % ${by})`,
        make: () => numbersOf(draft).filter((x, { by }) => x % by !== 0, { captures: { by } }),
        ...both((of) => draft[of].filter((x) => x % by !== 0)),
      };
    },
  },
  shuffle: {
    fits: () => true,
    after: (draft, rng) => {
      const buffer = 1 + rng.int(12);
      return {
        ...draft,
        text: `${draft.text}.shuffle(${buffer})`,
        make: () => draft.make().shuffle(buffer, { seed: 7 }),
        isOrdered: false,
      };
    },
  },
  flatMap: {
    fits: isSmall,
    after: (draft, rng) => {
      const by = 1 + rng.int(3);
      return {
        ...draft,
        text: `${draft.text}.flatMap(${by})`,
        make: () =>
          numbersOf(draft).flatMap((x, { by, Dataset }) => Dataset.range(x, x + x % (by + 1)), {
            captures: { by },
          }),
        ...both((of) =>
          draft[of].flatMap((x) => Array.from({ length: x % (by + 1) }, (_, i) => x + i))
        ),
      };
    },
  },
  interleave: {
    fits: isSmall,
    after: (draft, rng) => {
      const cycleLength = 1 + rng.int(3);
      const blockLength = 1 + rng.int(2);
      return {
        ...draft,
        text: `${draft.text}.interleave(${cycleLength}, ${blockLength})`,
        make: () =>
          numbersOf(draft).interleave((x, { Dataset }) => Dataset.range(x, x + 2), {
            cycleLength,
            blockLength,
          }),
        ...both((of) => draft[of].flatMap((x) => [x, x + 1])),
        isOrdered: false,
      };
    },
  },
  concatenate: {
    fits: isFlat,
    after: (draft, rng) => {
      const other = drawSource(rng);
      return {
        ...draft,
        text: `${draft.text}.concatenate(${other.text})`,
        make: () => numbersOf(draft).concatenate(numbersOf(other)),
        ...both((of) => [...draft[of], ...other[of]]),
      };
    },
  },
  zip: {
    fits: isFlat,
    after: (draft, rng) => {
      const other = drawSource(rng);
      const length = Math.min(draft.values.length, other.values.length);
      // Marks the values of each side, so that the bag has both.
      return {
        text: `zip(${draft.text}, ${other.text})`,
        make: () => Dataset.zip([draft.make(), numbersOf(other).map((x) => x + 100_000)]),
        values: [
          ...draft.values.slice(0, draft.isOrdered ? length : undefined),
          ...other.values.slice(0, length).map((x) => x + 100_000),
        ],
        pool: [...draft.pool, ...other.values.map((x) => x + 100_000)],
        isDivisible: false,
        isOrdered: draft.isOrdered,
        isExact: draft.isExact && (draft.isOrdered || length === draft.values.length),
        isFlat: false,
      };
    },
  },
  repeat: {
    fits: ({ pool }) => pool.length <= VALUES_MAX / 3,
    after: (draft, rng) => {
      const times = 1 + rng.int(3);
      return {
        ...draft,
        text: `${draft.text}.repeat(${times})`,
        make: () => draft.make().repeat(times),
        ...both((of) => Array.from({ length: times }, () => draft[of]).flat()),
      };
    },
  },
  take: {
    fits: isFlat,
    after: (draft, rng) => {
      const count = rng.int(10);
      return {
        ...draft,
        text: `${draft.text}.take(${count})`,
        make: () => draft.make().take(count),
        values: draft.isOrdered ? draft.values.slice(0, count) : draft.values,
        isDivisible: false,
        isExact: draft.isExact && (draft.isOrdered || count >= draft.values.length),
      };
    },
  },
  skip: {
    fits: isFlat,
    after: (draft, rng) => {
      const count = rng.int(10);
      return {
        ...draft,
        text: `${draft.text}.skip(${count})`,
        make: () => draft.make().skip(count),
        values: draft.isOrdered ? draft.values.slice(count) : draft.values,
        isDivisible: false,
        isExact: draft.isExact && (draft.isOrdered || count === 0),
      };
    },
  },
  batch: {
    fits: isFlat,
    after: (draft, rng) => {
      const size = 1 + rng.int(5);
      const isPadded = rng.chance(0.3);
      return {
        ...draft,
        text: `${draft.text}.${isPadded ? "paddedBatch" : "batch"}(${size})`,
        make: () => isPadded ? draft.make().paddedBatch(size) : draft.make().batch(size),
        isFlat: false,
      };
    },
  },
  prefetch: {
    fits: () => true,
    after: (draft, rng) => {
      const buffer = 1 + rng.int(3);
      return {
        ...draft,
        text: `${draft.text}.prefetch(${buffer})`,
        make: () => draft.make().prefetch(buffer),
      };
    },
  },
};
