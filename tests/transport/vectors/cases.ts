/**
 * The messages whose bytes `vectors.json` fixes, and how a reader in another language should read
 * each.
 *
 * `deno run --allow-write=tests/transport/vectors tests/transport/vectors/generate.ts` writes the
 * file; it must change only when the format does, on purpose.
 */

import { RaggedTensor, Tensor, tensor } from "../../../core/tensor.ts";
import { encodeMessage } from "../../../transport/codec.ts";
import { Payload } from "../../../transport/payload.ts";

/** One message. */
export interface VectorCase {
  readonly name: string;
  readonly value: unknown;
}

/** One message in `vectors.json`. */
export interface Vector {
  name: string;
  /** The whole message. */
  hex: string;
  /** Its value in plain JSON: see {@linkcode describe}. */
  value: unknown;
}

/** One case per kind of value in messages. */
export const CASES: readonly VectorCase[] = [
  { name: "nil", value: null },
  { name: "booleans", value: [true, false] },
  { name: "integers", value: [0, 127, 128, 256, 65536, 4294967295, -1, -32, -33, -129, -32769] },
  { name: "numbers beyond 32 bits are float64", value: [4294967296, 2 ** 53, -2147483649] },
  { name: "floats", value: [0.5, -0, NaN, Infinity, -Infinity] },
  { name: "64-bit integers", value: [0n, -1n, 2n ** 63n - 1n, 2n ** 64n - 1n, -(2n ** 63n)] },
  { name: "strings", value: ["", "leat", "Mühle", "水車", "😀", "\uFEFFmark", "x".repeat(40)] },
  { name: "map", value: { z: 1, a: { "": [] }, undefinedIsLeftOut: undefined } },
  { name: "bytes in the envelope", value: new Uint8Array([1, 2, 255]) },
  { name: "bytes as payload", value: new Uint8Array(256).map((_, i) => i) },
  {
    name: "typed arrays",
    value: {
      int8: new Int8Array([-1, 2]),
      int16: new Int16Array([-2, 3]),
      uint16: new Uint16Array([65535]),
      int32: new Int32Array([-3]),
      uint32: new Uint32Array([4294967295]),
      int64: new BigInt64Array([-4n]),
      uint64: new BigUint64Array([2n ** 64n - 1n]),
      float16: new Float16Array([1.5]),
      float32: new Float32Array([0.25, -0.5]),
      float64: new Float64Array([0.1]),
    },
  },
  {
    name: "tensor",
    value: { image: tensor([[1, 2, 3], [4, 5, 6]], { dtype: "int16" }), label: 7 },
  },
  { name: "tensor of no axes", value: tensor(2.5, { dtype: "float32" }) },
  { name: "tensor of no elements", value: Tensor.zeros("uint8", [0, 3]) },
  { name: "tensor of booleans", value: tensor([true, false, true]) },
  { name: "tensor of strings", value: tensor(["a", "", "水車"]) },
  {
    name: "tensor of bytes",
    value: new Tensor("bytes", [2], [new Uint8Array([9]), new Uint8Array([8, 7])]),
  },
  {
    name: "ragged tensor",
    value: new RaggedTensor(
      tensor([1, 2, 3], { dtype: "int32" }),
      new BigInt64Array([0n, 2n, 2n, 3n]),
    ),
  },
  {
    name: "ragged tensor of strings",
    value: new RaggedTensor(tensor(["x", "yz"]), new BigInt64Array([0n, 1n, 2n])),
  },
  { name: "payload", value: { batch: new Payload(encodeMessage({ t: tensor([1, 2]) })) } },
  {
    name: "two tensors and their order",
    value: [tensor([1], { dtype: "uint8" }), { deep: tensor([2], { dtype: "uint8" }) }],
  },
];

/**
 * A value as JSON that any language can rebuild: numbers that JSON lacks as `{"number": "NaN"}`,
 * bigints as `{"int": "1"}`, bytes and payloads as `{"bytes": hex}`, typed arrays and tensors as
 * `{"dtype", "shape", "data"}` (data flat; 64-bit integers as text, blocks as hex, bool as 0 and
 * 1), ragged tensors as `{"values", "rowSplits"}`.
 */
export function describe(value: unknown): unknown {
  if (typeof value === "number") {
    return Number.isFinite(value) && !Object.is(value, -0)
      ? value
      : { number: Object.is(value, -0) ? "-0" : String(value) };
  }
  if (typeof value === "bigint") return { int: String(value) };
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(describe);
  if (value instanceof Uint8Array) return { bytes: value.toHex() };
  if (value instanceof Payload) return { bytes: value.bytes.toHex() };
  if (value instanceof Tensor) return describeTensor(value);
  if (value instanceof RaggedTensor) {
    return { values: describeTensor(value.values), rowSplits: [...value.rowSplits].map(Number) };
  }
  if (ArrayBuffer.isView(value)) return describeTensor(tensor(value as Float32Array));
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(entries.map(([key, item]) => [key, describe(item)]));
}

function describeTensor({ dtype, shape, data }: Tensor): unknown {
  const plain = [...data as Iterable<unknown>].map((item) => {
    if (typeof item === "bigint") return String(item);
    return item instanceof Uint8Array ? item.toHex() : item;
  });
  return { dtype, shape, data: plain };
}

/** `vectors.json` as the current code writes it. */
export function makeVectors(): Vector[] {
  return CASES.map(({ name, value }) => ({
    name,
    hex: encodeMessage(value).toHex(),
    value: describe(value),
  }));
}
