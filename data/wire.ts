/**
 * The wire form of a graph: canonical JSON. It is equal for equal graphs, so that its digest is the
 * dataset's fingerprint. Arguments of operators and names of captures are sorted; components of
 * elements keep the order of their keys.
 *
 * JSON values are written as they are. Any other value becomes an object with one key that begins with
 * `$`. A user's key that begins with `$` gets a second one.
 */
import { DETACHED, isDetached } from "../core/bytes.ts";
import { type DType, dtypeOf, isDType, TYPED_ARRAYS } from "../core/dtype.ts";
import { LeatError } from "../core/error.ts";
import { hashBytes } from "../core/hash.ts";
import { parseJson } from "../core/json.ts";
import { RaggedTensor, Tensor } from "../core/tensor.ts";
import { isPlainObject } from "../core/tree.ts";
import { NodeFunction } from "./udf/call.ts";
import { optionsOf, show } from "./check.ts";
import { isForeign, markForeign } from "./foreign/foreign.ts";
import { type Attributes, DatasetNode, nodeKind } from "./node.ts";
import { TensorSpec } from "./elements/spec.ts";
import { deserializeFunction } from "./udf/user_function.ts";

/** Options of `deserialize`. */
export interface DeserializeOptions {
  /**
   * Whether to trust the author of the pipeline like the author of this program: its functions then
   * run in this process, with all its permissions. Default false: they run in a confined process.
   */
  readonly trustPipeline?: boolean;
}

export const deserializeOptions = optionsOf<DeserializeOptions>("deserialize", {
  trustPipeline: true,
});

/** The first characters of every serialised graph, which name its format. */
const FORMAT = "leat-dataset-1";

/** The length of the longest string that V8 makes. A serialised graph is one. */
const TEXT_LENGTH_MAX = 2 ** 29 - 24;

/** How deep operators may nest in a serialised graph. */
const DEPTH_MAX = 4096;

/** Limit of the digits of an integer. The time to parse one grows faster than their number. */
const BIGINT_DIGITS_MAX = 4096;

/**
 * Limit of the operators in a serialised graph. An operator that several others read counts once
 * for each of them. About as many fit in the 32 MiB that a dispatcher accepts by default.
 */
const OPERATORS_MAX = 2 ** 18;

/**
 * The bytes of a graph. Fails, naming the operator, if something in it cannot be serialised.
 *
 * @throws {LeatError} `resource_exhausted` for too many operators, before it takes memory for them.
 */
export function serializeGraph(root: DatasetNode): Uint8Array {
  checkOperators(root);
  const text = graphText(root, new ValueWriter());
  return new TextEncoder().encode(`{"format":${JSON.stringify(FORMAT)},"root":${text}}`);
}

/**
 * Checks that a graph can be serialised, without writing the data in it: that may be large.
 *
 * @throws {LeatError} what `serializeGraph` throws; `resource_exhausted` for too much data.
 */
export function checkSerializable(root: DatasetNode): void {
  checkOperators(root);
  graphText(root, new CheckingWriter());
}

/**
 * The JSON of a graph; `writer` writes its attributes. An operator that several others read occurs once
 * for each of them.
 */
export function graphText(root: DatasetNode, writer: ValueWriter): string {
  return perNode<string>(root, (node, inputs) => {
    if (writer.leavesOut(node)) return inputs[0]!;
    const attributes = JSON.stringify(attributesOf(node, writer));
    const kind = JSON.stringify(node.kind);
    return `{"kind":${kind},"attributes":${attributes},"inputs":[${inputs.join()}]}`;
  });
}

/** @throws {LeatError} `resource_exhausted` for a graph that is too large to be serialised. */
export function checkOperators(root: DatasetNode): void {
  perNode<number>(root, ({ kind }, inputs) => {
    const operators = inputs.reduce((sum, count) => sum + count, 1);
    if (operators <= OPERATORS_MAX) return operators;
    throw new LeatError(
      "resource_exhausted",
      `Cannot serialise ${kind}: with all operators below it, it has ${operators} operators, over ` +
        `the limit of ${OPERATORS_MAX}. A dataset that several operators read is serialised once ` +
        "for each of them: save() it, and load() it in each",
    );
  });
}

/**
 * Computes a value for each operator from the values of its inputs: once, even if several read it.
 */
export function perNode<T>(
  root: DatasetNode,
  compute: (node: DatasetNode, inputs: readonly T[]) => T,
): T {
  const known = new Map<DatasetNode, T>();
  const valueOf = (node: DatasetNode): T => {
    if (!known.has(node)) known.set(node, compute(node, node.inputs.map(valueOf)));
    return known.get(node)!;
  };
  return valueOf(root);
}

export interface DecodingOptions {
  /**
   * Whether this program built the graph, or trusts its author. Default false: nodes are foreign.
   */
  readonly isOwn?: boolean;
}

/** Reads what `serializeGraph` wrote; `invalid_argument` for other bytes. Runs and evaluates nothing. */
export function deserializeGraph(bytes: Uint8Array, options: DecodingOptions = {}): DatasetNode {
  let parsed: unknown;
  try {
    parsed = parseJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw malformed("not JSON", cause);
  }
  if (!isPlainObject(parsed) || parsed.format !== FORMAT) throw malformed(`not ${FORMAT}`);
  try {
    return decodeNode(parsed.root, new ValueReader(options));
  } catch (error) {
    if (!(error instanceof LeatError)) throw malformed("malformed values", error);
    // The message may quote the graph, whose author must not steer this program's terminal.
    throw options.isOwn ? error : LeatError.fromWire(error.toWire());
  }
}

/** The digest of a graph: 64 hexadecimal digits of SHA-256. */
export function fingerprintGraph(root: DatasetNode): string {
  return hashBytes(serializeGraph(root));
}

/**
 * A graph as plain data; `writer` writes its attributes. Foreign operators stay foreign for a reader
 * that trusts the rest, as the state of its own iterator, in which elements of others may be.
 */
export function encodeNode(node: DatasetNode, writer: ValueWriter): unknown {
  const attributes = attributesOf(node, writer);
  const inputs = node.inputs.map((input) => encodeNode(input, writer));
  return { kind: node.kind, attributes, inputs, ...(isForeign(node) ? { isForeign: true } : {}) };
}

function attributesOf(node: DatasetNode, writer: ValueWriter): unknown {
  try {
    return writer.write(byName(writer.attributesOf(node)));
  } catch (cause) {
    const { code, message } = LeatError.from(cause, "invalid_argument");
    throw new LeatError(code, `Cannot serialise ${node.kind}: ${message}`, { cause });
  }
}

/** Attributes sorted by name, without undefined ones: unlike components of elements they have no order. */
function byName(attributes: Attributes): Attributes {
  return Object.fromEntries(
    Object.entries(attributes)
      .filter(([, value]) => value !== undefined)
      .sort(([a], [b]) => a < b ? -1 : 1),
  );
}

/** Reads what `encodeNode` wrote. */
export function decodeNode(wire: unknown, reader: ValueReader, depth = 0): DatasetNode {
  if (depth > DEPTH_MAX) throw malformed(`deeper than ${DEPTH_MAX} operators`);
  if (!isPlainObject(wire) || typeof wire.kind !== "string" || !Array.isArray(wire.inputs)) {
    throw malformed("an operator without kind or inputs");
  }
  const attributes = reader.read(wire.attributes);
  if (!isPlainObject(attributes)) throw malformed(`${wire.kind} without attributes`);
  const inputs = wire.inputs.map((input) => decodeNode(input, reader, depth + 1));
  const node = nodeKind(wire.kind).fromWire(attributes, inputs);
  const isWhole = node.inputs.length === inputs.length &&
    node.inputs.every((input) => input instanceof DatasetNode);
  if (!isWhole) throw malformed(`${wire.kind} with ${inputs.length} inputs`);
  if (!reader.isOwn || wire.isForeign === true) markForeign(node);
  return node;
}

/** Writes values as JSON, with components in their order. Subclasses may write some differently. */
export class ValueWriter {
  /** The attributes to write for an operator. */
  attributesOf(node: DatasetNode): Attributes {
    return node.attributes;
  }

  /** Whether to write the input of an operator in its place. */
  leavesOut(_node: DatasetNode): boolean {
    return false;
  }

  write(value: unknown): unknown {
    switch (typeof value) {
      case "string":
      case "boolean":
        return value;
      case "number":
        return Number.isFinite(value) && !Object.is(value, -0)
          ? value
          : { $number: Object.is(value, -0) ? "-0" : String(value) };
      case "bigint":
        return { $bigint: integerText(value) };
      case "undefined":
        return { $undefined: true };
      case "object":
        return value === null ? null : this.#object(value);
      default:
        return this.opaque(value);
    }
  }

  protected function(fn: NodeFunction): unknown {
    return { $function: this.write(fn.serialize()) };
  }

  protected bytes(bytes: Uint8Array): unknown {
    return bytes.toBase64();
  }

  /** Writes a value that is not plain data. */
  protected opaque(value: unknown): unknown {
    throw new LeatError("invalid_argument", `${show(value)} is not plain data`);
  }

  #object(value: object): unknown {
    if (Array.isArray(value)) {
      const parts: unknown[] = [];
      for (const part of value) parts.push(this.write(part)); // `map()` would keep holes
      return parts;
    }
    if (value instanceof NodeFunction) return this.function(value);
    if (value instanceof Tensor) {
      const { dtype, shape, data } = value;
      return { $tensor: { dtype, shape, data: this.write(data) } };
    }
    if (value instanceof RaggedTensor) {
      const { values, rowSplits } = value;
      return { $ragged: { values: this.write(values), rowSplits: this.write(rowSplits) } };
    }
    if (value instanceof TensorSpec) return { $spec: { dtype: value.dtype, shape: value.shape } };
    const dtype = dtypeOf(value);
    if (dtype !== undefined) {
      const { buffer, byteOffset, byteLength } = value as ArrayBufferView;
      if (isDetached(value as ArrayBufferView)) throw detached(value);
      return { [`$${dtype}`]: this.bytes(new Uint8Array(buffer, byteOffset, byteLength)) };
    }
    if (!isPlainObject(value)) return this.opaque(value);
    return Object.fromEntries(
      Object.entries(value).map(([key, part]) => [
        key.startsWith("$") ? `$${key}` : key,
        this.write(part),
      ]),
    );
  }
}

/** Counts texts and bytes, and leaves them out. */
class CheckingWriter extends ValueWriter {
  #length = 0;

  override write(value: unknown): unknown {
    return typeof value === "string" ? this.#count(value.length) : super.write(value);
  }

  protected override bytes({ byteLength }: Uint8Array): string {
    return this.#count(Math.ceil(byteLength / 3) * 4); // Base64
  }

  #count(length: number): string {
    this.#length += length;
    if (this.#length <= TEXT_LENGTH_MAX) return "";
    throw new LeatError(
      "resource_exhausted",
      `its data is too large to be sent: over ${TEXT_LENGTH_MAX} bytes. Read it from files instead ` +
        "of putting it into the pipeline or its captures",
    );
  }
}

function detached(array: object): LeatError {
  return new LeatError(
    "failed_precondition",
    `A ${array.constructor.name} cannot be encoded, ${DETACHED}`,
  );
}

/** Reads what a `ValueWriter` wrote. */
export class ValueReader {
  readonly isOwn: boolean;

  constructor({ isOwn = false }: DecodingOptions = {}) {
    this.isOwn = isOwn;
  }

  read(wire: unknown): unknown {
    if (Array.isArray(wire)) return wire.map((part) => this.read(part));
    if (!isPlainObject(wire)) return wire;
    const keys = Object.keys(wire);
    const [key] = keys;
    if (keys.length === 1 && key!.startsWith("$") && !key!.startsWith("$$")) {
      return this.tagged(key!.slice(1), wire[key!]);
    }
    return Object.fromEntries(
      Object.entries(wire).map(([key, part]) => [
        key.startsWith("$$") ? key.slice(1) : key,
        this.read(part),
      ]),
    );
  }

  protected bytes(wire: unknown): Uint8Array<ArrayBuffer> {
    return Uint8Array.fromBase64(wire as string);
  }

  protected tagged(tag: string, wire: unknown): unknown {
    switch (tag) {
      case "number":
        return Number(wire);
      case "bigint":
        if (typeof wire === "string" && wire.length <= BIGINT_DIGITS_MAX) return BigInt(wire);
        throw malformed(`an integer of more than ${BIGINT_DIGITS_MAX} digits (BIGINT_DIGITS_MAX)`);
      case "undefined":
        return undefined;
      case "function": {
        const { fn, captures } = deserializeFunction(this.read(wire));
        return new NodeFunction("deserialize", "function", fn, captures);
      }
      case "tensor": {
        const { dtype, shape, data } = wire as { dtype: DType; shape: number[]; data: unknown };
        return new Tensor(dtype, shape, this.read(data) as never);
      }
      case "ragged": {
        const { values, rowSplits } = wire as { values: unknown; rowSplits: unknown };
        return new RaggedTensor(this.read(values) as Tensor, this.read(rowSplits) as never);
      }
      case "spec": {
        const { dtype, shape } = wire as { dtype: DType; shape: number[] };
        return new TensorSpec(dtype, shape);
      }
    }
    if (!isDType(tag) || !(tag in TYPED_ARRAYS)) throw malformed(`unknown value $${tag}`);
    const TypedArray = TYPED_ARRAYS[tag as keyof typeof TYPED_ARRAYS];
    const bytes = this.bytes(wire);
    return new TypedArray(bytes.buffer, 0, bytes.byteLength / TypedArray.BYTES_PER_ELEMENT);
  }
}

function integerText(value: bigint): string {
  const text = String(value);
  if (text.length <= BIGINT_DIGITS_MAX) return text;
  throw new LeatError(
    "invalid_argument",
    `an integer has more than ${BIGINT_DIGITS_MAX} digits (BIGINT_DIGITS_MAX); make it text`,
  );
}

function malformed(why: string, cause?: unknown): LeatError {
  return new LeatError("invalid_argument", `These bytes are not a serialised dataset: ${why}.`, {
    cause,
  });
}
