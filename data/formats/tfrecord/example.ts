/**
 * Reads `tf.train.Example`s, which most TFRecord files contain. An example is a protocol buffer: a map
 * from names to lists of bytes, floats or integers.
 */
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { dtypeOf } from "../../../core/dtype.ts";
import { LeatError } from "../../../core/error.ts";
import { show } from "../../check.ts";
import {
  BYTES_LIST,
  encodeExample,
  FEATURE,
  FEATURES,
  FLOAT_LIST,
  INT64_LIST,
  KEY,
  type Kind,
  MAPPED,
  VALUE,
} from "./example_encoding.ts";
import {
  type FeatureDType,
  type FeaturePlan,
  type Features,
  type ParsedExample,
  planFeatures,
  shapeValues,
} from "./example_features.ts";

const KIND_OF_DTYPE: Readonly<Record<FeatureDType, Kind>> = {
  bytes: BYTES_LIST,
  string: BYTES_LIST,
  float32: FLOAT_LIST,
  int64: INT64_LIST,
};
const KIND_NAMES: Readonly<Record<Kind, string>> = {
  [BYTES_LIST]: "bytes (bytes_list)",
  [FLOAT_LIST]: "floats (float_list)",
  [INT64_LIST]: "integers (int64_list)",
};

/** Maximum number of features that a message names. */
const NAMED_MAX = 8;

/**
 * Parses the named features of a serialised example; others are not decoded. Single values are
 * bigints, numbers, `Uint8Array`s (views of `bytes`) or strings; everything else is a tensor.
 *
 * @throws {LeatError} `data_loss` if a feature without a default is missing, a feature has another
 * type or size, or `bytes` is no example; `invalid_argument` for invalid `features`.
 *
 * @example
 * ```ts
 * import { parseExample } from "./example.ts";
 * import { encodeExample } from "./example_encoding.ts";
 *
 * const bytes = encodeExample({ label: 7n, tokens: [3n, 1n, 4n] });
 * const { label, tokens, weight } = parseExample(bytes, {
 *   label: "int64",
 *   tokens: { dtype: "int64", shape: [null] },
 *   weight: { dtype: "float32", default: 1 },
 * });
 * console.log(label, tokens.shape, weight); // 7n [3] 1
 * ```
 */
export function parseExample<const F extends Features>(
  bytes: Uint8Array,
  features: F,
): ParsedExample<F> {
  const plans = planFeatures(features);
  if (dtypeOf(bytes) !== "uint8") {
    throw new LeatError(
      "invalid_argument",
      `An example is parsed from bytes, not from ${show(bytes)}.`,
    );
  }
  let found: Map<string, Uint8Array>;
  try {
    found = readFeatures(bytes);
  } catch (cause) {
    throw malformed(cause);
  }
  const parsed: Record<string, unknown> = {};
  for (const plan of plans) parsed[plan.name] = readFeature(plan, found);
  return parsed as ParsedExample<F>;
}

/** User functions get this as an argument, because serialised functions cannot import. */
export const example = { parse: parseExample, encode: encodeExample } as const;

/** Returns the serialised features by name. If a name occurs twice, the last feature wins. */
function readFeatures(bytes: Uint8Array): Map<string, Uint8Array> {
  const found = new Map<string, Uint8Array>();
  for (const features of fieldsOf(bytes, FEATURES)) {
    for (const entry of fieldsOf(features, FEATURE)) {
      let name = "";
      let feature = new Uint8Array(0);
      const reader = new BinaryReader(entry);
      while (reader.pos < reader.len) {
        const [field, type] = reader.tag();
        if (field === KEY && type === WireType.LengthDelimited) name = reader.string();
        else if (field === MAPPED && type === WireType.LengthDelimited) feature = bytesOf(reader);
        else reader.skip(type, field);
      }
      found.set(name, feature);
    }
  }
  return found;
}

/**
 * Yields the serialised values of one message-typed field. A list of them could take a hundred times
 * the bytes of an example: an empty one has two.
 */
function* fieldsOf(bytes: Uint8Array, wanted: number): Generator<Uint8Array> {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field === wanted && type === WireType.LengthDelimited) yield bytesOf(reader);
    else reader.skip(type, field);
  }
}

function bytesOf(reader: BinaryReader): Uint8Array<ArrayBuffer> {
  return reader.bytes() as Uint8Array<ArrayBuffer>;
}

function readFeature(plan: FeaturePlan, found: ReadonlyMap<string, Uint8Array>): unknown {
  const { name, dtype, shape, valueCount } = plan;
  const feature = found.get(name) ?? new Uint8Array(0);
  const kind = kindOf(feature);
  if (kind === undefined) {
    if (plan.default !== undefined) return plan.default;
    throw dataLoss(
      `The example has no feature ${show(name)}, which has no default; ${namesOf(found)}`,
    );
  }
  if (kind !== KIND_OF_DTYPE[dtype]) {
    throw dataLoss(
      `Feature ${show(name)} holds ${KIND_NAMES[kind]}, and ${dtype} is expected`,
    );
  }
  const values = readList(dtype, feature, kind);
  const fits = shape[0] === null ? values.length % valueCount === 0 : values.length === valueCount;
  if (fits) return shapeValues(plan, values);
  const lengths = shape.map((length) => length ?? "null").join(", ");
  throw dataLoss(
    `Feature ${show(name)} has ${values.length} values, which do not make the shape [${lengths}]`,
  );
}

/** Returns the kind of the last list of a feature; `undefined` if the feature has none. */
function kindOf(feature: Uint8Array): Kind | undefined {
  let kind: Kind | undefined;
  try {
    const reader = new BinaryReader(feature);
    while (reader.pos < reader.len) {
      const [field, type] = reader.tag();
      const isKind = field === BYTES_LIST || field === FLOAT_LIST || field === INT64_LIST;
      if (isKind && type === WireType.LengthDelimited) kind = field;
      reader.skip(type, field);
    }
  } catch (cause) {
    throw malformed(cause);
  }
  return kind;
}

/** Returns the values of a feature's lists of one kind, packed or not. */
function readList(
  dtype: FeatureDType,
  feature: Uint8Array,
  kind: Kind,
): Uint8Array[] | string[] | Float32Array | BigInt64Array {
  const values: unknown[] = [];
  try {
    for (const list of fieldsOf(feature, kind)) readValues(dtype, list, values);
  } catch (cause) {
    throw malformed(cause);
  }
  if (dtype === "float32") return Float32Array.from(values as number[]);
  if (dtype === "int64") return BigInt64Array.from(values as bigint[]);
  return values as Uint8Array[] | string[];
}

function readValues(dtype: FeatureDType, bytes: Uint8Array, values: unknown[]): void {
  const reader = new BinaryReader(bytes);
  const readOne = () => dtype === "float32" ? reader.float() : BigInt(reader.int64());
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field !== VALUE) reader.skip(type, field);
    else if (dtype === "bytes") values.push(reader.bytes());
    else if (dtype === "string") values.push(reader.string());
    else if (type !== WireType.LengthDelimited) values.push(readOne());
    else for (const stop = reader.uint32() + reader.pos; reader.pos < stop;) values.push(readOne());
  }
}

function namesOf(found: ReadonlyMap<string, unknown>): string {
  if (found.size === 0) return "it has none";
  const names = [...found.keys()].slice(0, NAMED_MAX).map(show).join(", ");
  return `it has ${names}${found.size > NAMED_MAX ? ` and ${found.size - NAMED_MAX} more` : ""}`;
}

function malformed(cause: unknown): LeatError {
  if (cause instanceof LeatError) return cause;
  const what = LeatError.from(cause).message;
  return new LeatError("data_loss", `These bytes are not a tf.train.Example: ${what}.`, { cause });
}

function dataLoss(message: string): LeatError {
  return new LeatError("data_loss", `${message}.`);
}
