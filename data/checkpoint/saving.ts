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
import { type Captures, isUserFunction, referenceOf } from "../udf/user_function.ts";
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

export function encodeIteration(
  { signature, operators }: Identity,
  saved: SavedIteration,
): Uint8Array<ArrayBuffer> {
  const bytes = encodeValue({ signature, operators, ...saved }, HEADER_BYTES);
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
export function decodeIteration(identity: Identity, bytes: unknown): SavedIteration {
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
  if (!isPlainObject(wire) || wire.signature !== identity.signature) {
    throw new LeatError(
      "failed_precondition",
      `This iterator was saved from another pipeline${
        differences(wire, identity.operators)
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

/**
 * A digest of any graph. Unlike the fingerprint, it exists for functions that cannot be serialised:
 * they count by their source text.
 */
export function signatureOf(root: DatasetNode): string {
  return identityOf(root).signature;
}

const identities = new WeakMap<DatasetNode, Identity>();

/** Only captures change in a graph: a program may change them between two iterators. */
export function identityOf(root: DatasetNode): Identity {
  const known = identities.get(root);
  if (known?.isCurrent) return known;
  const identity = new Identity(root);
  identities.set(root, identity);
  return identity;
}

/** What tells a graph from others, with the captures that its functions have when it is made. */
export class Identity {
  readonly signature: string;
  readonly #root: DatasetNode;
  readonly #captures: readonly WrittenCaptures[];
  #operators: readonly Operator[] | undefined;

  constructor(root: DatasetNode) {
    const writer = new SignatureWriter();
    this.signature = hashBytes(graphText(root, writer));
    this.#root = root;
    this.#captures = writer.captures;
  }

  /** Whether the captures are the same as before. */
  get isCurrent(): boolean {
    return this.#captures.every(({ captures, digest }) => valueDigest(captures) === digest);
  }

  /** The operators, inputs first. */
  get operators(): readonly Operator[] {
    return this.#operators ??= operatorsOf(this.#root);
  }
}

interface WrittenCaptures {
  readonly captures: Captures;
  readonly digest: string;
}

class SignatureWriter extends ValueWriter {
  /** The captures of all functions that it has written. */
  readonly captures: WrittenCaptures[] = [];

  override attributesOf(node: DatasetNode): Attributes {
    return node.checkpointAttributes;
  }

  override leavesOut(node: DatasetNode): boolean {
    return node.isLeftOutOfCheckpoints;
  }

  protected override function({ fn, captures }: NodeFunction): unknown {
    const reference = referenceOf(fn);
    const text = reference === undefined ? String(fn) : `${reference.place}#${reference.name}`;
    const written = this.write(captures);
    if (captures !== undefined) this.captures.push({ captures, digest: jsonDigest(written) });
    return { $function: text, captures: written };
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

function operatorsOf(root: DatasetNode): readonly Operator[] {
  const found: Operator[] = [];
  perNode<void>(root, (node) => {
    if (found.length === OPERATORS_MAX || node.isLeftOutOfCheckpoints) return;
    const given = Object.entries(node.checkpointAttributes)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, argumentText(value)] as const);
    found.push([node.kind, Object.fromEntries(given)]);
  });
  return found;
}

/** A number or boolean as text, and a digest of anything else: it may be long, or secret. */
function argumentText(value: unknown): string {
  if (["number", "boolean", "bigint"].includes(typeof value)) return String(value);
  return DIGEST_MARK + valueDigest(value).slice(0, 8);
}

function valueDigest(value: unknown): string {
  return jsonDigest(new SignatureWriter().write(value));
}

function jsonDigest(written: unknown): string {
  return hashBytes(JSON.stringify(written));
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
