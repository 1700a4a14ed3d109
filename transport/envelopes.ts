/** Checks envelopes from untrusted peers before any actor sees them. */
import { type Envelope, OPEN_MAX } from "../actors/runtime/envelope.ts";
import type { FencedRef, Ref } from "../actors/runtime/ref.ts";
import { LeatError, type WireError } from "../core/error.ts";
import { isCount } from "../core/count.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Limit of the length of an actor's node, path or incarnation: receivers keep them per sender. */
const REF_TEXT_LENGTH_MAX = 2_048;
const METHOD_LENGTH_MAX = 128;

type Make = (
  fields: Fields,
  source: FencedRef,
  target: Ref,
  number: number,
) => Envelope | undefined;

/** How to make each kind of envelope from its fields; `undefined` if a field is wrong. */
const KINDS: Readonly<Record<string, Make>> = {
  tell: ({ method, body }, source, target, number) =>
    isMethod(method) ? { kind: "tell", source, target, number, method, body } : undefined,
  ask: askOf,
  reply: ({ id, body }, source, target, number) =>
    isCount(id) ? { kind: "reply", source, target, number, id, body } : undefined,
  failure: ({ id, error }, source, target, number) =>
    isCount(id) && isError(error)
      ? { kind: "failure", source, target, number, id, error }
      : undefined,
  watch: ({ id }, source, target, number) =>
    isCount(id) ? { kind: "watch", source, target, number, id } : undefined,
  unwatch: ({ id }, source, target, number) =>
    isCount(id) ? { kind: "unwatch", source, target, number, id } : undefined,
  down: ({ id, error }, source, target, number) =>
    isCount(id) && isError(error) ? { kind: "down", source, target, number, id, error } : undefined,
};

function askOf(
  { method, body, id, timeoutMs, settledBelow, open }: Fields,
  source: FencedRef,
  target: Ref,
  number: number,
): Envelope | undefined {
  if (!isMethod(method) || !isCount(id) || !isDuration(timeoutMs)) return undefined;
  const ask = { kind: "ask", source, target, number, id, method, body, timeoutMs } as const;
  if (settledBelow === undefined && open === undefined) return ask;
  if (settledBelow !== undefined && !isCount(settledBelow)) return undefined;
  if (open === undefined) return { ...ask, settledBelow: settledBelow! };
  if (!isOpen(open)) return undefined;
  return settledBelow === undefined ? { ...ask, open } : { ...ask, settledBelow, open };
}

/**
 * Makes an envelope of a decoded message. It drops unknown fields, because receivers keep parts of
 * envelopes, and a peer may have added anything. @throws LeatError `invalid_argument` if the message
 * is no envelope.
 */
export function asEnvelope(message: unknown): Envelope {
  if (!isMap(message)) throw malformed("a message that is not a map");
  const { kind, number } = message;
  if (typeof kind !== "string" || !Object.hasOwn(KINDS, kind)) {
    throw malformed(`a message of kind ${String(kind).slice(0, 40)}`);
  }
  const source = refOf(message.source);
  const target = refOf(message.target);
  const envelope = source?.incarnation === undefined || target === undefined || !isCount(number)
    ? undefined
    : KINDS[kind]!(message, source as FencedRef, target, number);
  if (envelope === undefined) throw malformed(`an incomplete envelope of kind ${kind}`);
  return envelope;
}

function isMap(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function refOf(value: unknown): Ref | undefined {
  if (!isMap(value)) return undefined;
  const { node, path, incarnation } = value;
  if (!isName(node) || !isName(path)) return undefined;
  if (incarnation === undefined) return { node, path };
  return isName(incarnation) ? { node, path, incarnation } : undefined;
}

function isName(value: unknown): value is string {
  return isTextUpTo(REF_TEXT_LENGTH_MAX, value);
}

function isTextUpTo(lengthMax: number, value: unknown): value is string {
  return typeof value === "string" && value.length <= lengthMax;
}

function isOpen(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.length <= OPEN_MAX && value.every(isCount);
}

/** Whether a deadline can be computed from a value. `Infinity` means none. */
function isDuration(value: unknown): value is number {
  return typeof value === "number" && !Number.isNaN(value);
}

function isMethod(value: unknown): value is string {
  return isTextUpTo(METHOD_LENGTH_MAX, value);
}

/** `LeatError.fromWire` checks the fields. */
function isError(value: unknown): value is WireError {
  return isMap(value);
}

function malformed(what: string): LeatError {
  return new LeatError("invalid_argument", `Malformed message: ${what}`);
}
