/** The option `optimizations` of `withOptions`. */
import { didYouMean, invalidArgument, show } from "../check.ts";
import { LeatError } from "../../core/error.ts";
import { isPlainObject } from "../../core/tree.ts";

/** The rules of static optimisation, by name. */
export interface OptimizationRules {
  /** Leaves out operators that change nothing: `skip(0)`, `take(-1)`. Default true. */
  readonly noOpElimination?: boolean | undefined;
  /**
   * Leaves out operators whose work an earlier one has done: `unique` after `unique`, `select`
   * after the same `select`, `prefetch` after one that reads as far ahead. Default true.
   */
  readonly deadTransformationElimination?: boolean | undefined;
  /** Calls the functions of adjacent `map`s in one loop. Default true. */
  readonly mapFusion?: boolean | undefined;
  /** Calls the functions of adjacent `filter`s in one loop. Default true. */
  readonly filterFusion?: boolean | undefined;
  /** Calls the functions of adjacent `map`s and `filter`s in one loop. Default true. */
  readonly mapAndFilterFusion?: boolean | undefined;
  /**
   * Writes numbers that `map` or `filter` gives, and images that a function returns as `decode` gave
   * them, directly to the memory of a batch. Default true.
   */
  readonly mapAndBatchFusion?: boolean | undefined;
  /**
   * Fills the buffer of `shuffle` for the next repetition of `repeat` while it empties. Default true.
   */
  readonly shuffleAndRepeatFusion?: boolean | undefined;
  /**
   * Reads only those columns of Parquet and Arrow files that `select` takes. Columns that are not
   * read can be damaged without an error. Default true.
   */
  readonly projectionPushdown?: boolean | undefined;
  /**
   * Stacks a window of `groupByWindow` that only becomes a batch, and the buckets of
   * `bucketBySequenceLength`, without a pipeline for each. Default true.
   */
  readonly groupAndBatchFusion?: boolean | undefined;
  /**
   * Calls the function of a `map` that is declared `batchable` once for many elements of a following
   * `batch`. Default true.
   */
  readonly mapVectorization?: boolean | undefined;
  /**
   * Calls a function that waits for several elements at once, as with `numParallelCalls: AUTOTUNE`.
   * The function must not depend on the order of its calls. Default false.
   */
  readonly mapParallelization?: boolean | undefined;
  /**
   * Adds `prefetch(AUTOTUNE)` at the end, unless elements are read ahead there already. Functions
   * then run while the consumer works, and for elements that it may never take. Default false.
   */
  readonly prefetchInjection?: boolean | undefined;
}

/** Which rules are used: none (false), all (true), or the defaults with changes by name. */
export type OptimizationOptions = boolean | OptimizationRules;

export type RuleName = keyof OptimizationRules;

export type Rules = ReadonlySet<RuleName>;

/** Whether each rule is used by default. */
const DEFAULTS: Readonly<Record<RuleName, boolean>> = {
  noOpElimination: true,
  deadTransformationElimination: true,
  mapFusion: true,
  filterFusion: true,
  mapAndFilterFusion: true,
  mapAndBatchFusion: true,
  shuffleAndRepeatFusion: true,
  projectionPushdown: true,
  groupAndBatchFusion: true,
  mapVectorization: true,
  mapParallelization: false,
  prefetchInjection: false,
};

export const RULE_NAMES = Object.keys(DEFAULTS) as readonly RuleName[];

/** @throws {LeatError} `invalid_argument` for anything but a boolean or rules with booleans. */
export function checkOptimizations(value: unknown): OptimizationOptions | undefined {
  if (value === undefined || typeof value === "boolean") return value;
  const valid = `a boolean, or booleans by the names ${RULE_NAMES.join(", ")}`;
  if (!isPlainObject(value)) throw invalidArgument("withOptions", "optimizations", valid, value);
  for (const [name, on] of Object.entries(value)) {
    if (!Object.hasOwn(DEFAULTS, name)) {
      throw new LeatError(
        "invalid_argument",
        `withOptions: optimizations must be ${valid}; there is no rule ${show(name)}` +
          didYouMean(name, RULE_NAMES),
      );
    }
    if (on !== undefined && typeof on !== "boolean") {
      throw invalidArgument("withOptions", `optimizations.${name}`, "a boolean", on);
    }
  }
  return { ...value };
}

export function rulesOf(options: OptimizationOptions | undefined): Rules {
  if (typeof options === "boolean") return new Set(options ? RULE_NAMES : []);
  return new Set(RULE_NAMES.filter((name) => options?.[name] ?? DEFAULTS[name]));
}
