/**
 * The wire form of a graph: canonical JSON, equal for equal graphs, so that its digest is the
 * dataset's fingerprint.
 *
 * JSON's own values stand for themselves. Everything else is an object with one key that begins with
 * a dollar sign; a key of the user's that begins with one is written with one more.
 */
import { type DType, dtypeOf, isDType, TYPED_ARRAYS } from "../core/dtype.ts";
import { LeatError } from "../core/error.ts";
import { hashBytes } from "../core/hash.ts";
import { Tensor } from "../core/tensor.ts";
import { isPlainObject } from "../core/tree.ts";
import { NodeFunction } from "./call.ts";
import { show } from "./check.ts";
import { type DatasetNode, nodeKind } from "./node.ts";
import { TensorSpec } from "./spec.ts";
import { deserializeFunction, serializeFunction } from "./udf/user_function.ts";

/** The first characters of every serialised graph, which name its format. */
const FORMAT = "leat-dataset-1";

/** How deep attributes and operators may nest in a serialised graph. */
const DEPTH_MAX = 4096;

/** The bytes of a graph. Fails, naming the operator, where something in it cannot travel. */
export function serializeGraph(root: DatasetNode): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ format: FORMAT, root: encodeNode(root) }));
}

/** The graph of `serializeGraph`'s bytes; `invalid_argument` for any others. */
export function deserializeGraph(bytes: Uint8Array): DatasetNode {
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw malformed("not JSON", cause);
  }
  if (!isPlainObject(parsed) || parsed.format !== FORMAT) throw malformed(`not ${FORMAT}`);
  try {
    return decodeNode(parsed.root, 0);
  } catch (error) {
    throw error instanceof LeatError ? error : malformed("malformed values", error);
  }
}

/** The digest of a graph: 64 hexadecimal digits of SHA-256. */
export function fingerprintGraph(root: DatasetNode): string {
  return hashBytes(serializeGraph(root));
}

function encodeNode(node: DatasetNode): unknown {
  let attributes: unknown;
  try {
    attributes = encode(node.attributes);
  } catch (cause) {
    const { code, message } = LeatError.from(cause, "invalid_argument");
    throw new LeatError(code, `Cannot serialise ${node.kind}: ${message}`, { cause });
  }
  return { kind: node.kind, attributes, inputs: node.inputs.map(encodeNode) };
}

function decodeNode(wire: unknown, depth: number): DatasetNode {
  if (depth > DEPTH_MAX) throw malformed(`deeper than ${DEPTH_MAX} operators`);
  if (!isPlainObject(wire) || typeof wire.kind !== "string" || !Array.isArray(wire.inputs)) {
    throw malformed("an operator without kind or inputs");
  }
  const attributes = decode(wire.attributes);
  if (!isPlainObject(attributes)) throw malformed(`${wire.kind} without attributes`);
  const inputs = wire.inputs.map((input) => decodeNode(input, depth + 1));
  return nodeKind(wire.kind).fromWire(attributes, inputs);
}

/** Absent where `undefined`; keys in the order of their code units. */
function encode(value: unknown): unknown {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0)
        ? value
        : { $number: Object.is(value, -0) ? "-0" : String(value) };
    case "bigint":
      return { $bigint: String(value) };
    case "undefined":
      return { $undefined: true };
    case "object":
      return value === null ? null : encodeObject(value);
    default:
      throw new LeatError("invalid_argument", `${show(value)} is no plain data`);
  }
}

function encodeObject(value: object): unknown {
  if (Array.isArray(value)) return value.map(encode);
  if (value instanceof NodeFunction) {
    return { $function: encode(serializeFunction(value.fn, value.captures)) };
  }
  if (value instanceof Tensor) {
    const { dtype, shape, data } = value;
    return { $tensor: { dtype, shape, data: encode(data) } };
  }
  if (value instanceof TensorSpec) return { $spec: { dtype: value.dtype, shape: value.shape } };
  const dtype = dtypeOf(value);
  if (dtype !== undefined) {
    const { buffer, byteOffset, byteLength } = value as ArrayBufferView;
    return { [`$${dtype}`]: new Uint8Array(buffer, byteOffset, byteLength).toBase64() };
  }
  if (!isPlainObject(value)) {
    throw new LeatError("invalid_argument", `${show(value)} is no plain data`);
  }
  const entries = Object.entries(value).filter(([, part]) => part !== undefined);
  entries.sort(([a], [b]) => a < b ? -1 : 1);
  return Object.fromEntries(
    entries.map(([key, part]) => [key.startsWith("$") ? `$${key}` : key, encode(part)]),
  );
}

function decode(wire: unknown): unknown {
  if (Array.isArray(wire)) return wire.map(decode);
  if (!isPlainObject(wire)) return wire;
  const keys = Object.keys(wire);
  const [key] = keys;
  if (keys.length === 1 && key!.startsWith("$") && !key!.startsWith("$$")) {
    return decodeTagged(key!.slice(1), wire[key!]);
  }
  return Object.fromEntries(
    Object.entries(wire).map(([key, part]) => [
      key.startsWith("$$") ? key.slice(1) : key,
      decode(part),
    ]),
  );
}

function decodeTagged(tag: string, wire: unknown): unknown {
  switch (tag) {
    case "number":
      return Number(wire);
    case "bigint":
      return BigInt(wire as string);
    case "undefined":
      return undefined;
    case "function": {
      const { fn, captures } = deserializeFunction(decode(wire));
      return new NodeFunction("deserialize", "function", fn, captures);
    }
    case "tensor": {
      const { dtype, shape, data } = wire as { dtype: DType; shape: number[]; data: unknown };
      return new Tensor(dtype, shape, decode(data) as never);
    }
    case "spec": {
      const { dtype, shape } = wire as { dtype: DType; shape: number[] };
      return new TensorSpec(dtype, shape);
    }
  }
  if (!isDType(tag) || !(tag in TYPED_ARRAYS) || typeof wire !== "string") {
    throw malformed(`unknown value $${tag}`);
  }
  const TypedArray = TYPED_ARRAYS[tag as keyof typeof TYPED_ARRAYS];
  const bytes = Uint8Array.fromBase64(wire);
  return new TypedArray(bytes.buffer, 0, bytes.byteLength / TypedArray.BYTES_PER_ELEMENT);
}

function malformed(why: string, cause?: unknown): LeatError {
  return new LeatError("invalid_argument", `These bytes are no serialised dataset: ${why}.`, {
    cause,
  });
}
