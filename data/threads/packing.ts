/**
 * Packs elements for `postMessage`, whose structured clone would lose the classes of tensors, and would
 * copy the whole buffer of a view.
 *
 * A tensor becomes an object with one key that begins with `$`. A user's key that begins with `$`
 * gets a second one.
 */
import { copyOfArray, DETACHED, isDetached } from "../../core/bytes.ts";
import { type DType, isTypedArray } from "../../core/dtype.ts";
import { LeatError } from "../../core/error.ts";
import { RaggedTensor, Tensor } from "../../core/tensor.ts";
import { isPlainObject, TREE_DEPTH_MAX } from "../../core/tree.ts";
import { show } from "../check.ts";

/** Smaller arrays are copied with the message, which costs less than moving a buffer. */
const MOVED_BYTES_MIN = 4_096;

/**
 * A copy of an element that can be sent.
 *
 * @param buffers Receives the buffers of the copy that should move with the message.
 * @throws {LeatError} `failed_precondition` for an element that is not plain data, or has an array
 * whose buffer was transferred.
 */
export function pack(value: unknown, buffers: ArrayBuffer[], depth = 0): unknown {
  switch (typeof value) {
    case "function":
    case "symbol":
      throw cannotTravel(value);
    case "object":
      break;
    default:
      return value;
  }
  if (value === null) return null;
  if (depth > TREE_DEPTH_MAX) {
    throw refused(`An element deeper than ${TREE_DEPTH_MAX} levels, or circular,`);
  }
  if (Array.isArray(value)) return value.map((part) => pack(part, buffers, depth + 1));
  if (value instanceof Tensor) {
    const { dtype, shape, data } = value;
    return { $tensor: { dtype, shape, data: pack(data, buffers, depth + 1) } };
  }
  if (value instanceof RaggedTensor) {
    const { values, rowSplits } = value;
    return { $ragged: [pack(values, buffers, depth + 1), pack(rowSplits, buffers, depth + 1)] };
  }
  if (isTypedArray(value)) {
    if (isDetached(value)) throw detached(value);
    const copy = copyOfArray(value); // a `Buffer` of Node.js arrives as a Uint8Array
    if (copy.byteLength >= MOVED_BYTES_MIN) buffers.push(copy.buffer as ArrayBuffer);
    return copy;
  }
  if (!isPlainObject(value)) throw cannotTravel(value);
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    if (key === "__proto__") throw refused("An element with the key __proto__");
    copy[key.startsWith("$") ? `$${key}` : key] = pack(value[key], buffers, depth + 1);
  }
  return copy;
}

/** Returns the element that was packed. Changes `packed` in place. */
export function unpack(packed: unknown): unknown {
  if (typeof packed !== "object" || packed === null || ArrayBuffer.isView(packed)) return packed;
  if (Array.isArray(packed)) {
    for (let i = 0; i < packed.length; i++) {
      if (typeof packed[i] === "object") packed[i] = unpack(packed[i]);
    }
    return packed;
  }
  const tree = packed as Record<string, unknown>;
  const keys = Object.keys(tree);
  if (keys.length === 1) {
    const { $tensor, $ragged } = tree as { $tensor?: PackedTensor; $ragged?: unknown[] };
    if ($tensor !== undefined) {
      return new Tensor($tensor.dtype, $tensor.shape, unpack($tensor.data) as never);
    }
    if ($ragged !== undefined) {
      return new RaggedTensor(unpack($ragged[0]) as Tensor, $ragged[1] as never);
    }
  }
  if (keys.some((key) => key.startsWith("$"))) {
    return Object.fromEntries(
      keys.map((key) => [key.startsWith("$$") ? key.slice(1) : key, unpack(tree[key])]),
    );
  }
  for (const key of keys) {
    if (typeof tree[key] === "object") tree[key] = unpack(tree[key]);
  }
  return tree;
}

interface PackedTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: unknown;
}

function detached(value: object): LeatError {
  return refused(`An element's ${value.constructor.name}`, `, ${DETACHED}`);
}

function cannotTravel(value: unknown): LeatError {
  return refused(
    show(value),
    ", only plain objects and " +
      "arrays of numbers, bigints, booleans, strings, null, typed arrays and tensors",
  );
}

function refused(what: string, why = ""): LeatError {
  return new LeatError("failed_precondition", `${what} cannot be sent to another thread${why}`);
}
