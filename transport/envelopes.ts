/** Checks envelopes from untrusted peers before any actor sees them. */
import { type Envelope, OPEN_MAX } from "../actors/runtime/envelope.ts";
import { LeatError } from "../core/error.ts";
import { isCount } from "../core/count.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Longest name, path or incarnation of an actor: receivers keep them for every sender. */
const REF_TEXT_LENGTH_MAX = 2_048;
const METHOD_LENGTH_MAX = 128;

/** Checks the fields of each kind besides source, target and number. */
const KINDS: Readonly<Record<string, (fields: Fields) => boolean>> = {
  tell: ({ method }) => isTextUpTo(METHOD_LENGTH_MAX, method),
  ask: ({ method, id, timeoutMs, settledBelow, open }) =>
    isTextUpTo(METHOD_LENGTH_MAX, method) && isCount(id) && typeof timeoutMs === "number" &&
    (settledBelow === undefined || isCount(settledBelow)) &&
    (open === undefined || (Array.isArray(open) && open.length <= OPEN_MAX && open.every(isCount))),
  reply: ({ id }) => isCount(id),
  failure: ({ id, error }) => isCount(id) && isMap(error),
  watch: ({ id }) => isCount(id),
  unwatch: ({ id }) => isCount(id),
  down: ({ id, error }) => isCount(id) && isMap(error),
};

/** Checks that a decoded message is an envelope. @throws LeatError `invalid_argument` if not. */
export function asEnvelope(message: unknown): Envelope {
  if (!isMap(message)) throw malformed("a message that is no map");
  const { kind, source, target, number } = message;
  if (typeof kind !== "string" || !Object.hasOwn(KINDS, kind)) {
    throw malformed(`a message of kind ${String(kind).slice(0, 40)}`);
  }
  const complete = isRef(source) && typeof source.incarnation === "string" && isRef(target) &&
    isCount(number) && KINDS[kind]!(message);
  if (!complete) throw malformed(`an incomplete envelope of kind ${kind}`);
  return message as unknown as Envelope;
}

function isMap(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isRef(value: unknown): value is Fields {
  const isName = (text: unknown) => isTextUpTo(REF_TEXT_LENGTH_MAX, text);
  return isMap(value) && isName(value.node) && isName(value.path) &&
    (value.incarnation === undefined || isName(value.incarnation));
}

function isTextUpTo(lengthMax: number, value: unknown): boolean {
  return typeof value === "string" && value.length <= lengthMax;
}

function malformed(what: string): LeatError {
  return new LeatError("invalid_argument", `Malformed message: ${what}`);
}
