/**
 * Reads `tf.train.Example`s, which most TFRecord files contain. An example is a protocol buffer: a map
 * from names to lists of bytes, floats or integers.
 */
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { utf8Text } from "../../../core/bytes.ts";
import { dtypeOf } from "../../../core/dtype.ts";
import { LeatError } from "../../../core/error.ts";
import { copyTree } from "../../../core/tree.ts";
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

/** Limit of the values of a feature of bytes or texts. Each takes 140 bytes, and as few as two in a file. */
export const FEATURE_VALUES_MAX = 1 << 22;

/**
 * Parses the named features of a serialised example; others are not decoded. Single values are
 * bigints, numbers, `Uint8Array`s (views of `bytes`) or strings; everything else is a tensor.
 *
 * @throws {LeatError} `data_loss` if a feature without a default is missing, a feature has another
 * type or size, a string is not UTF-8, or `bytes` is no example; `invalid_argument` for invalid
 * `features`.
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
  const found = readFeatures(bytes, plans);
  const parsed: Record<string, unknown> = {};
  for (const plan of plans) parsed[plan.name] = readFeature(plan, found, bytes);
  return parsed as ParsedExample<F>;
}

/** User functions get this as an argument, because serialised functions cannot import. */
export const example = { parse: parseExample, encode: encodeExample } as const;

/** Returns the planned features, serialised. If a name occurs twice, the last feature wins. */
function readFeatures(bytes: Uint8Array, plans: readonly FeaturePlan[]): Map<string, Uint8Array> {
  const found = new Map<string, Uint8Array>(plans.map(({ name }) => [name, NO_FEATURE]));
  try {
    for (const { name, feature } of entriesOf(bytes)) {
      if (found.has(name)) found.set(name, feature);
    }
  } catch (cause) {
    throw malformed(cause);
  }
  return found;
}

const NO_FEATURE = new Uint8Array(0);

/** Yields all features of an example, serialised. */
function* entriesOf(bytes: Uint8Array): Generator<{ name: string; feature: Uint8Array }> {
  for (const features of fieldsOf(bytes, FEATURES)) {
    for (const entry of fieldsOf(features, FEATURE)) {
      let name = "";
      let feature: Uint8Array = NO_FEATURE;
      const reader = new BinaryReader(entry);
      while (reader.pos < reader.len) {
        const [field, type] = reader.tag();
        if (field === KEY && type === WireType.LengthDelimited) name = reader.string();
        else if (field === MAPPED && type === WireType.LengthDelimited) feature = bytesOf(reader);
        else reader.skip(type, field);
      }
      yield { name, feature };
    }
  }
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

/** @param example For the names in messages. */
function readFeature(
  plan: FeaturePlan,
  found: ReadonlyMap<string, Uint8Array>,
  example: Uint8Array,
): unknown {
  const { name, dtype, shape, valueCount } = plan;
  const feature = found.get(name)!;
  const kind = kindOf(feature);
  if (kind === undefined) {
    if (plan.default !== undefined) return copyTree(plan.default);
    throw dataLoss(
      `The example has no feature ${show(name)}, which has no default; ${namesOf(example)}`,
    );
  }
  if (kind !== KIND_OF_DTYPE[dtype]) {
    throw dataLoss(
      `Feature ${show(name)} holds ${KIND_NAMES[kind]}, and ${dtype} is expected`,
    );
  }
  const values = readList(plan, feature, kind);
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
  { name, dtype }: FeaturePlan,
  feature: Uint8Array,
  kind: Kind,
): Uint8Array[] | string[] | Float32Array | BigInt64Array {
  try {
    switch (dtype) {
      case "float32":
        return readNumbers(new Float32Array(feature.length >> 2), dtype, feature, kind);
      case "int64":
        return readNumbers(new BigInt64Array(feature.length), dtype, feature, kind);
    }
    const values: unknown[] = [];
    readValues(dtype, feature, kind, (value) => {
      if (value === undefined) {
        throw dataLoss(
          `Feature ${show(name)} holds bytes that are not UTF-8; declare it as "bytes"`,
        );
      }
      if (values.push(value) <= FEATURE_VALUES_MAX) return;
      throw new LeatError(
        "resource_exhausted",
        `A feature of a tf.train.Example has more than ${FEATURE_VALUES_MAX} values of ${dtype} ` +
          "(FEATURE_VALUES_MAX).",
      );
    });
    return values as Uint8Array[] | string[];
  } catch (cause) {
    throw malformed(cause);
  }
}

/** @param store Has room for as many values as the feature's bytes can hold. */
function readNumbers<A extends Float32Array | BigInt64Array>(
  store: A,
  dtype: FeatureDType,
  feature: Uint8Array,
  kind: Kind,
): A {
  let count = 0;
  readValues(dtype, feature, kind, (value) => store[count++] = value as never);
  return store.slice(0, count) as A;
}

/** @param put Gets `undefined` for a string that is not UTF-8. */
function readValues(
  dtype: FeatureDType,
  feature: Uint8Array,
  kind: Kind,
  put: (value: unknown) => void,
): void {
  for (const list of fieldsOf(feature, kind)) {
    const reader = new BinaryReader(list);
    const readOne = () => dtype === "float32" ? reader.float() : BigInt(reader.int64());
    while (reader.pos < reader.len) {
      const [field, type] = reader.tag();
      if (field !== VALUE) reader.skip(type, field);
      else if (dtype === "bytes") put(reader.bytes());
      else if (dtype === "string") put(utf8Text(reader.bytes()));
      else if (type !== WireType.LengthDelimited) put(readOne());
      else for (const stop = reader.uint32() + reader.pos; reader.pos < stop;) put(readOne());
    }
  }
}

function namesOf(example: Uint8Array): string {
  const named = new Set<string>();
  let more = 0;
  for (const { name } of entriesOf(example)) {
    if (named.size < NAMED_MAX) named.add(name);
    else if (!named.has(name)) more++;
  }
  if (named.size === 0) return "it has none";
  return `it has ${[...named].map(show).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function malformed(cause: unknown): LeatError {
  if (cause instanceof LeatError) return cause;
  const what = LeatError.from(cause).message;
  return new LeatError("data_loss", `These bytes are not a tf.train.Example: ${what}.`, { cause });
}

function dataLoss(message: string): LeatError {
  return new LeatError("data_loss", `${message}.`);
}
