/**
 * Saved iterations as bytes: the state of every iterator of a graph, its random state, and a
 * signature of the graph, so that another graph is refused, and its operators, to say how that differs.
 *
 * Layout: the format (8 bytes), a SHA-256 of everything that follows (32 bytes), and an encoded value.
 */
import { nodeCrypto } from "../../core/builtins.ts";
import { LeatError } from "../../core/error.ts";
import { hashBytes } from "../../core/hash.ts";
import { isPlainObject } from "../../core/tree.ts";
import type { NodeFunction } from "../udf/call.ts";
import { show } from "../check.ts";
import type { Attributes, DatasetNode } from "../node.ts";
import { isUserFunction, referenceOf } from "../udf/user_function.ts";
import type { SavedOutcome } from "../elements/answer.ts";
import { EncodedValue, encodeValue } from "../elements/value_codec.ts";
import { wholeState } from "./whole_state.ts";
import { graphText, perNode, ValueWriter } from "../wire.ts";

/** The state of an iteration at one position. */
export interface SavedIteration {
  readonly seed: bigint;
  readonly seeded: boolean;
  readonly salt: bigint;
  readonly epoch: number;
  readonly split: number;
  /** The state that the iterators of a node share: see `saveShared()`. */
  readonly shared: unknown;
  /** The saved state of the last operator's iterator; `null` at the end. */
  readonly state: unknown;
  /** Elements that rule `prefetchInjection` has read ahead; absent for none. */
  readonly ahead?: readonly SavedOutcome[];
}

const FORMAT = new TextEncoder().encode("LEATIT01");
const DIGEST_BYTES = 32;
const HEADER_BYTES = FORMAT.length + DIGEST_BYTES;

export function encodeIteration(root: DatasetNode, saved: SavedIteration): Uint8Array<ArrayBuffer> {
  const identity = { signature: signatureOf(root), operators: operatorsOf(root) };
  const bytes = encodeValue({ ...identity, ...saved }, HEADER_BYTES);
  bytes.set(FORMAT);
  bytes.set(digestOf(bytes), FORMAT.length);
  return bytes;
}

/**
 * Reads what `encodeIteration` wrote.
 *
 * Errors: `invalid_argument` for other bytes, `data_loss` for damaged ones, `failed_precondition` if
 * they were saved from another pipeline, or lack a field.
 */
export function decodeIteration(root: DatasetNode, bytes: unknown): SavedIteration {
  if (!(bytes instanceof Uint8Array)) throw noState(`got ${show(bytes)}`);
  if (bytes.length < HEADER_BYTES || FORMAT.some((byte, i) => bytes[i] !== byte)) {
    throw noState(`these ${bytes.length} bytes have another format`);
  }
  const stored = bytes.subarray(FORMAT.length, FORMAT.length + DIGEST_BYTES);
  if (digestOf(bytes).some((byte, i) => byte !== stored[i])) {
    throw new LeatError(
      "data_loss",
      `A saved iterator of ${bytes.length} bytes is damaged or cut short: its checksum is wrong.`,
    );
  }
  // Checked before reading the rest, which may contain operators that do not exist here.
  const encoded = new EncodedValue(bytes.subarray(HEADER_BYTES));
  const { wire } = encoded;
  if (!isPlainObject(wire) || wire.signature !== signatureOf(root)) {
    throw new LeatError(
      "failed_precondition",
      `This iterator was saved from another pipeline${
        differences(wire, operatorsOf(root))
      }. Make ` +
        "sure that the dataset's definition has not changed: operators, their arguments, the seed " +
        "and the source text of its functions.",
    );
  }
  const iteration = wholeState(encoded.read({ isOwn: true }) as SavedIteration);
  const { seed, seeded, salt, epoch, split, shared, state } = iteration;
  const ahead = "ahead" in iteration ? { ahead: iteration.ahead } : {};
  return { seed, seeded, salt, epoch, split, shared, state, ...ahead };
}

function digestOf(bytes: Uint8Array): Uint8Array {
  return nodeCrypto().createHash("sha256").update(bytes.subarray(FORMAT.length + DIGEST_BYTES))
    .digest();
}

function noState(why: string): LeatError {
  return new LeatError(
    "invalid_argument",
    `restore: the state must be what save() of an iterator resolved to; ${why}.`,
  );
}

/** Begins a digest. Base64 does not have this character. */
const DIGEST_MARK = "#";
/** Longer arrays count by a digest. That many bytes have as many characters in base64. */
const TEXT_BYTES_MAX = 48;

const signatures = new WeakMap<DatasetNode, string>();

/**
 * A digest of any graph. Unlike the fingerprint, it exists for functions that cannot be serialised:
 * they count by their source text.
 */
export function signatureOf(root: DatasetNode): string {
  return signatures.getOrInsertComputed(
    root,
    () => hashBytes(graphText(root, new SignatureWriter())),
  );
}

class SignatureWriter extends ValueWriter {
  override attributesOf(node: DatasetNode): Attributes {
    return node.checkpointAttributes;
  }

  protected override function({ fn, captures }: NodeFunction): unknown {
    const reference = referenceOf(fn);
    const text = reference === undefined ? String(fn) : `${reference.place}#${reference.name}`;
    return { $function: text, captures: this.write(captures) };
  }

  /**
   * A digest of long arrays: data in memory may have more bytes than a text may have characters. The
   * mark tells it from the text of a short array, which takes less time and fewer characters.
   */
  protected override bytes(bytes: Uint8Array): string {
    return bytes.length <= TEXT_BYTES_MAX ? bytes.toBase64() : DIGEST_MARK + hashBytes(bytes);
  }

  protected override opaque(value: unknown): unknown {
    const reference = referenceOf(value);
    if (reference !== undefined) return { $opaque: `${reference.place}#${reference.name}` };
    return { $opaque: isUserFunction(value) ? String(value) : show(value) };
  }
}

/** An operator's kind and arguments, as far as an error can say how they differ. */
type Operator = readonly [kind: string, given: Readonly<Record<string, string>>];

/** Limit of the operators of a graph that a state describes. */
const OPERATORS_MAX = 32;
/** Limit of the differences that an error names. */
const DIFFERENCES_MAX = 8;

const operators = new WeakMap<DatasetNode, readonly Operator[]>();

/** The operators of a graph, inputs first. */
function operatorsOf(root: DatasetNode): readonly Operator[] {
  return operators.getOrInsertComputed(root, () => {
    const found: Operator[] = [];
    perNode<void>(root, (node) => {
      if (found.length === OPERATORS_MAX) return;
      const given = Object.entries(new SignatureWriter().attributesOf(node))
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => [name, argumentText(value)] as const);
      found.push([node.kind, Object.fromEntries(given)]);
    });
    return found;
  });
}

/** A number or boolean as text, and a digest of anything else: it may be long, or secret. */
function argumentText(value: unknown): string {
  if (["number", "boolean", "bigint"].includes(typeof value)) return String(value);
  return DIGEST_MARK + hashBytes(JSON.stringify(new SignatureWriter().write(value))).slice(0, 8);
}

/** How the graph of a saved iteration differs from the present one, after ": "; "" if it is not known. */
function differences(wire: unknown, present: readonly Operator[]): string {
  if (!isPlainObject(wire) || !("operators" in wire)) return "";
  const saved = wire.operators as readonly Operator[];
  const [before, now] = [saved, present].map((list) => list.map(([kind]) => kind).join());
  if (before !== now) return `: that one had ${before}, and this one has ${now}`;
  const found = present.flatMap(([kind, is], i) => {
    const [, was] = saved[i]!;
    return Object.keys({ ...was, ...is }).filter((name) => was[name] !== is[name]).map((name) => {
      const [old, next] = [was, is].map((given) => given[name] ?? "absent");
      const isHidden = `${old} ${next}`.includes(DIGEST_MARK);
      return `${kind}: ${name} ${isHidden ? "is another" : `was ${old} and is ${next}`}`;
    });
  });
  return found.length === 0 ? "" : `: ${found.slice(0, DIFFERENCES_MAX).join(", ")}`;
}

/** The error if an operator fails on a state whose checksum is right: operators do not check states. */
export function unreadableState(cause: unknown): LeatError {
  return new LeatError(
    "invalid_argument",
    "restore: this state was not written by save() of this pipeline, in this version of Leat: " +
      `${LeatError.from(cause).message}`,
    { cause },
  );
}
