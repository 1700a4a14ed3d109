/** Writes `tf.train.Example`s, and defines the field numbers of their protobuf messages. */
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { dtypeOf, isTypedArray } from "../../../core/dtype.ts";
import { LeatError } from "../../../core/error.ts";
import { Tensor } from "../../../core/tensor.ts";
import { show } from "../../check.ts";

export const BYTES_LIST = 1;
export const FLOAT_LIST = 2;
export const INT64_LIST = 3;

/** The kinds of lists, by their field numbers in `Feature`. */
export type Kind = typeof BYTES_LIST | typeof FLOAT_LIST | typeof INT64_LIST;

/** `Example.features`. */
export const FEATURES = 1;
/** `Features.feature`, a map; `KEY` and `MAPPED` are the key and the value of its entries. */
export const FEATURE = 1;
export const KEY = 1;
export const MAPPED = 2;
/** `value` in all three kinds of lists. */
export const VALUE = 1;

/** The values that a feature may have. */
export type FeatureValue =
  | bigint
  | boolean
  | number
  | string
  | readonly (bigint | boolean | number | string | Uint8Array)[]
  | ArrayBufferView
  | Tensor;

/**
 * Serialises an example. Numbers are written as floats; for integers use bigints, booleans, or
 * typed arrays and tensors of integers. Strings are written as UTF-8, and a `Uint8Array` as one
 * bytes value.
 *
 * @throws {LeatError} `invalid_argument` naming a feature whose values cannot be written, are of
 * different kinds, or beyond int64 or float32.
 *
 * @example
 * ```ts
 * import { encodeExample } from "./example_encoding.ts";
 *
 * const bytes = encodeExample({ image: new Uint8Array([1, 2]), size: new Int32Array([32, 32]), score: 0.5 });
 * console.log(bytes.length); // 54
 * ```
 */
export function encodeExample(
  values: Readonly<Record<string, FeatureValue>>,
): Uint8Array<ArrayBuffer> {
  const writer = new BinaryWriter();
  writer.tag(FEATURES, WireType.LengthDelimited).fork();
  for (const [name, value] of Object.entries(values)) {
    writer.tag(FEATURE, WireType.LengthDelimited).fork();
    writer.tag(KEY, WireType.LengthDelimited).string(name);
    writer.tag(MAPPED, WireType.LengthDelimited).fork();
    writeFeature(writer, name, value);
    writer.join().join();
  }
  return writer.join().finish() as Uint8Array<ArrayBuffer>;
}

function writeFeature(writer: BinaryWriter, name: string, value: unknown): void {
  const [kind, values] = kindAndValues(name, value);
  if (kind === undefined) return;
  writer.tag(kind, WireType.LengthDelimited).fork();
  if (kind === BYTES_LIST) {
    for (const item of values) {
      writer.tag(VALUE, WireType.LengthDelimited);
      if (typeof item === "string") writer.string(item);
      else writer.bytes(item as Uint8Array);
    }
  } else if (kind === FLOAT_LIST) {
    writer.tag(VALUE, WireType.LengthDelimited)
      .bytes(floatBytes(name, values as ArrayLike<number>));
  } else {
    writer.tag(VALUE, WireType.LengthDelimited).fork();
    for (const item of values) {
      writer.int64(checkInt64(name, BigInt(item as number | bigint | boolean)));
    }
    writer.join();
  }
  writer.join();
}

/** Returns the float32s nearest to `values`, little-endian as the machine's. */
function floatBytes(name: string, values: ArrayLike<number>): Uint8Array {
  const floats = Float32Array.from(values);
  const beyond = floats.findIndex((float, i) =>
    !Number.isFinite(float) && Number.isFinite(values[i])
  );
  if (beyond < 0) return new Uint8Array(floats.buffer);
  throw new LeatError(
    "invalid_argument",
    `example.encode: feature ${show(name)} has ${
      values[beyond]
    }, and is stored as float32, whose largest value ` +
      `is about 3.4e38. Scale or clip it.`,
  );
}

function checkInt64(name: string, value: bigint): bigint {
  if (BigInt.asIntN(64, value) === value) return value;
  throw new LeatError(
    "invalid_argument",
    `example.encode: feature ${
      show(name)
    } has ${value}, and is stored as int64, which has -2^63 to ` +
      `2^63 - 1. Use a smaller one, or a string.`,
  );
}

type Values = ArrayLike<unknown> & Iterable<unknown>;

/** Returns the kind of a feature's list and its values. An empty array has no kind. */
function kindAndValues(name: string, value: unknown): [Kind | undefined, Values] {
  if (value instanceof Tensor) {
    const { dtype, data } = value;
    if (dtype === "bytes" || dtype === "string") return [BYTES_LIST, data];
    return [dtype.startsWith("float") ? FLOAT_LIST : INT64_LIST, data];
  }
  if (isTypedArray(value)) {
    const dtype = dtypeOf(value)!;
    if (dtype === "uint8") return [BYTES_LIST, [value]];
    return [dtype.startsWith("float") ? FLOAT_LIST : INT64_LIST, value];
  }
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  const kinds = new Set(values.map(kindOfScalar));
  const [kind] = kinds;
  if (kinds.size <= 1 && (values.length === 0 || kind !== undefined)) return [kind, values];
  throw new LeatError(
    "invalid_argument",
    `example.encode: feature ${show(name)} must be bigints or booleans, numbers (which are ` +
      `floats), or strings and Uint8Arrays, all of one of these; got ${show(value)}`,
  );
}

function kindOfScalar(value: unknown): Kind | undefined {
  if (typeof value === "bigint" || typeof value === "boolean") return INT64_LIST;
  if (typeof value === "number") return FLOAT_LIST;
  return typeof value === "string" || dtypeOf(value) === "uint8" ? BYTES_LIST : undefined;
}
