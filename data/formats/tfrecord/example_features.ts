/** Declares which features of a `tf.train.Example` are read, with which dtypes and defaults. */
import { type DType, dtypeOf, zerosOf } from "../../../core/dtype.ts";
import { LeatError } from "../../../core/error.ts";
import { Tensor } from "../../../core/tensor.ts";
import { isPlainObject } from "../../../core/tree.ts";
import { invalidArgument, show } from "../../check.ts";
import { type ElementSpec, TensorSpec } from "../../elements/spec.ts";

/**
 * The dtype of a feature: `int64_list`, `float_list`, or `bytes_list` as bytes or as UTF-8 text.
 */
export type FeatureDType = "int64" | "float32" | "bytes" | "string";

/** A single value of a feature. */
export type FeatureScalar<D extends FeatureDType> = D extends "int64" ? bigint
  : D extends "float32" ? number
  : D extends "bytes" ? Uint8Array
  : string;

/** How a feature is read. */
export interface Feature<D extends FeatureDType = FeatureDType> {
  /** The kind of its list, and whether bytes are read as text. */
  readonly dtype: D;
  /**
   * Lengths of its axes; default `[]`, a single value. If the first is null, the number of values
   * varies, and is 0 if the feature is missing (`VarLenFeature`, `FixedLenSequenceFeature`).
   */
  readonly shape?: readonly (number | null)[] | undefined;
  /**
   * Replaces a missing feature: a list of all its values, or one value that is repeated. Without a
   * default, a feature of fixed shape is required.
   */
  readonly default?: FeatureScalar<D> | readonly FeatureScalar<D>[] | number | readonly number[];
}

/** The features to read, by name. */
export type Features = Readonly<Record<string, FeatureDType | Feature>>;

/** The dtype of a declared feature. */
export type FeatureDTypeOf<F> = F extends FeatureDType ? F
  : F extends { readonly dtype: infer D } ? D
  : never;

/** The values of features: single values as they are, everything else as tensors. */
export type ParsedExample<F> = {
  -readonly [K in keyof F]: FeatureDTypeOf<F[K]> extends infer D extends FeatureDType
    ? F[K] extends { readonly shape: readonly [unknown, ...unknown[]] } ? Tensor<D>
    : F[K] extends { readonly shape: readonly [] } ? FeatureScalar<D>
    : F[K] extends { readonly shape: unknown } ? FeatureScalar<D> | Tensor<D>
    : FeatureScalar<D>
    : never;
};

/** A checked feature, with its default as a scalar or tensor. */
export interface FeaturePlan {
  readonly name: string;
  readonly dtype: FeatureDType;
  readonly shape: readonly (number | null)[];
  /** Number of values. If the first axis varies: number of values per index of this axis. */
  readonly valueCount: number;
  /** `undefined` if the feature is required. */
  readonly default: unknown;
}

const KINDS: readonly unknown[] = ["int64", "float32", "bytes", "string"];

const plans = new WeakMap<Features, readonly FeaturePlan[]>();

/**
 * Plans how to read features. The plan is cached by the object `features`.
 *
 * @throws {LeatError} `invalid_argument` naming the feature.
 */
export function planFeatures(features: Features): readonly FeaturePlan[] {
  if (!isPlainObject(features)) {
    throw invalidArgument("example.parse", "features", "an object of features by name", features);
  }
  let plan = plans.get(features);
  if (plan === undefined) {
    plan = Object.entries(features).map(([name, feature]) => planFeature(name, feature));
    plans.set(features, plan);
  }
  return plan;
}

export function featuresSpec(features: Features): ElementSpec {
  return Object.fromEntries(
    planFeatures(features).map(({ name, dtype, shape }) => [name, new TensorSpec(dtype, shape)]),
  );
}

/** Returns a single value as it is, and others as a tensor. */
export function shapeValues(plan: FeaturePlan, values: unknown): unknown {
  const { dtype, shape, valueCount } = plan;
  const data = values as ArrayLike<unknown>;
  if (shape.length === 0) return data[0];
  const filled = shape.map((length) => length ?? data.length / valueCount);
  return new Tensor(dtype as DType, filled, values as never);
}

function planFeature(name: string, feature: unknown): FeaturePlan {
  const refuse = (argument: string, wanted: string, value: unknown) =>
    invalidArgument("example.parse", `${argument} of feature ${show(name)}`, wanted, value);
  const { dtype, shape = [], default: fallback } = (
    typeof feature === "string" ? { dtype: feature } : feature ?? {}
  ) as { dtype?: unknown; shape?: unknown; default?: unknown };
  if (name === "__proto__") throw refuse("the name", "another", name);
  if (!KINDS.includes(dtype)) throw refuse("the dtype", `one of ${KINDS.join(", ")}`, dtype);
  const isLength = (length: unknown, axis: number) =>
    (length === null && axis === 0) || (Number.isSafeInteger(length) && length as number >= 0);
  if (!Array.isArray(shape) || !shape.every(isLength)) {
    throw refuse("the shape", "an array of lengths, of which the first may be null", shape);
  }
  const plan = {
    name,
    dtype: dtype as FeatureDType,
    shape,
    valueCount: shape.reduce((size: number, length: number | null) => size * (length ?? 1), 1),
  };
  if (shape[0] === null && plan.valueCount === 0) {
    throw refuse("the shape", "without 0 where its first length is null", shape);
  }
  return { ...plan, default: makeDefault(plan, fallback) };
}

function makeDefault(plan: Omit<FeaturePlan, "default">, fallback: unknown): unknown {
  const { name, dtype, shape, valueCount } = plan;
  const varies = shape[0] === null;
  if (fallback === undefined && !varies) return undefined;
  const isList = Array.isArray(fallback) || (ArrayBuffer.isView(fallback) && dtype !== "bytes");
  const given = fallback === undefined
    ? []
    : isList
    ? [...fallback as Iterable<unknown>]
    : [fallback];
  const all = isList || varies ? given : new Array(valueCount).fill(fallback);
  if (varies ? all.length % valueCount !== 0 : all.length !== valueCount) {
    throw new LeatError(
      "invalid_argument",
      `example.parse: the default of feature ${show(name)} has ${all.length} values, which do ` +
        `not make the shape [${shape.map((length) => length ?? "null").join(", ")}]`,
    );
  }
  const data = zerosOf(dtype, all.length);
  all.forEach((value, i) => data[i] = scalarOf(name, dtype, value) as never);
  return shapeValues({ ...plan, default: undefined }, data);
}

function scalarOf(name: string, dtype: FeatureDType, value: unknown): unknown {
  switch (dtype) {
    case "int64":
      if (typeof value === "bigint" && BigInt.asIntN(64, value) === value) return value;
      if (Number.isSafeInteger(value)) return BigInt(value as number);
      break;
    case "float32":
      if (typeof value === "number") return value;
      break;
    case "bytes":
      if (dtypeOf(value) === "uint8") return value;
      break;
    case "string":
      if (typeof value === "string") return value;
  }
  throw invalidArgument("example.parse", `the default of feature ${show(name)}`, dtype, value);
}
