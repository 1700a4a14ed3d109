/**
 * Checks the shape of requests before a handler sees them; the handler checks their meaning. Answers of
 * another program are checked by the same schemas.
 * Unknown fields are removed. A newer peer may send them, but a receiver must keep nothing that the
 * checks do not bound.
 */
import * as v from "valibot";
import { LeatError, WIRE_ERROR_DEPTH_MAX, type WireError } from "../../core/error.ts";
import { shownText } from "../../core/shown_text.ts";
import { guardOf } from "./guard.ts";
import type { AnswerOf, MethodOf, RequestOf } from "./protocol.ts";
import type { FencedRef } from "./ref.ts";

/** Returns a request without unknown fields. @throws {LeatError} what is wrong with it. */
export type Check = (request: unknown) => unknown;

export type Checks<P> = { readonly [M in MethodOf<P>]: Check };

type Schemas<P> = { readonly [M in MethodOf<P>]: v.GenericSchema };

/** Makes checks from schemas. A schema that differs from its request's type does not compile. */
export function checksOf<P>(): <S extends Schemas<P>>(schemas: S & Agreeing<P, S>) => Checks<P> {
  return (schemas) => {
    const checks = Object.entries<v.GenericSchema>(schemas).map(([method, schema]) => {
      return [method, schema === nothing ? ignored : checkOf(method, schema)] as const;
    });
    return Object.fromEntries(checks) as Checks<P>;
  };
}

/**
 * Returns an answer without unknown fields.
 *
 * @param node The node that answered, for errors.
 * @throws {LeatError} `invalid_argument`: the node, and what is wrong with its answer.
 */
export type AnswerCheck<A> = (answer: unknown, node: string) => A;

type AnswerSchemas<P> = { readonly [M in MethodOf<P>]?: v.GenericSchema };

type AnswerChecks<P, S> = {
  readonly [M in MethodOf<P> & keyof S]: AnswerCheck<AnswerOf<P, M>>;
};

/** Makes checks of answers from schemas. A schema that differs from its answer's type does not compile. */
export function answerChecksOf<P>(): <S extends AnswerSchemas<P>>(
  schemas: S & AgreeingAnswers<P, S>,
) => AnswerChecks<P, S> {
  return (schemas) => {
    const checks = Object.entries<v.GenericSchema>(schemas).map(([method, schema]) =>
      [method, answerCheckOf(method, schema)] as const
    );
    return Object.fromEntries(checks) as AnswerChecks<P, typeof schemas>;
  };
}

/** The check of the answers to one method. */
export function answerCheckOf<A>(method: string, schema: v.GenericSchema): AnswerCheck<A> {
  return knownOf(schema, (issue, node) =>
    new LeatError(
      "invalid_argument",
      `The answer of ${shownText(node)} to ${method} is malformed: ${
        faultIn(issue, "the answer")
      }; ` +
        "check that the address is right, and that all programs have the same version of Leat",
      { details: { method, node, path: placeIn(issue) } },
    ));
}

/** The check of a method that ignores its request. */
export const ignored: Check = () => null;

/**
 * Returns a function that removes a value's unknown fields. It throws `fault` for a wrong value.
 * @param fault Gets the first issue, and the node that the value comes from.
 */
function knownOf<T>(
  schema: v.GenericSchema,
  fault: (issue: v.GenericIssue, node: string) => LeatError,
): (value: unknown, node?: string) => T {
  const fits = guardOf(schema, true);
  return (value, node = "") => {
    if (fits(value)) return value as T;
    const { issues, output } = v.safeParse(schema, value, FIRST_FAULT);
    // The value fits, but has unknown fields: the output is a copy without them.
    if (issues === undefined) return output as T;
    throw fault(issues[0], node);
  };
}

function checkOf(method: string, schema: v.GenericSchema): Check {
  return knownOf(
    schema,
    (issue) =>
      new LeatError("invalid_argument", `${method}: ${faultIn(issue, "the request")}`, {
        details: { method, path: placeIn(issue) ?? "the request" },
      }),
  );
}

const FIRST_FAULT = { abortEarly: true } as const;
/** Characters of a value, or of the path of an unknown field, that a message shows. */
const SHOWN_LENGTH = 60;
const OBJECTS: readonly string[] = ["object", "strict_object"];

/** The path of the wrong field, if not the whole value is wrong. */
function placeIn(issue: v.GenericIssue): string | undefined {
  return v.getDotPath(issue) ?? undefined;
}

/** What is wrong. @param whole The words for the whole value. */
function faultIn(issue: v.GenericIssue, whole: string): string {
  const place = placeIn(issue);
  const { received } = issue;
  const shown = shortened(received);
  const length = typeof issue.input === "string" && shown !== received
    ? `${issue.input.length} characters: `
    : "";
  // An `exactObject` allows no value of a field that it does not name. The peer chose its name.
  if (issue.expected === "never" && place !== undefined) {
    return `${shownText(shortened(place))} is not known here: use one version of Leat everywhere`;
  }
  // The schema of the parent object describes a missing field.
  return OBJECTS.includes(issue.type) && issue.path?.at(-1)?.value === undefined &&
      place !== undefined
    ? `${place} is missing`
    : `${place ?? whole} must be ${issue.message}, got ${length}${shownText(shown)}`;
}

function shortened(text: string): string {
  return text.length > SHOWN_LENGTH ? `${text.slice(0, SHOWN_LENGTH)}…` : text;
}

// Schemas for the parts of requests. The message of each says what is expected. Receivers keep much
// of what they are sent, so every text and every list has a bound.

/** Characters of a name of a job, dataset, worker, tag or request. */
const NAME_LENGTH_MAX = 1_024;
/** Characters of other text, such as the path of a folder. */
const TEXT_LENGTH_MAX = 4_096;
/** Characters of an error text. */
const REASON_LENGTH_MAX = 65_536;
/** Items of a list. */
const LIST_LENGTH_MAX = 65_536;

/** A text of at most this many characters (UTF-16 code units). */
export function textUpTo(lengthMax: number): v.CustomSchema<string, string> {
  return v.custom<string, string>(
    // Text that is not valid UTF-16 can be neither sent nor journaled.
    (value) => typeof value === "string" && value.length <= lengthMax && value.isWellFormed(),
    `a text of at most ${lengthMax} characters`,
  );
}

export const name = textUpTo(NAME_LENGTH_MAX);

/** The form of a worker's name: people give it, logs show it, and options list it. */
export const WORKER_NAME_FORM =
  `a non-empty text of at most ${NAME_LENGTH_MAX} characters, without control characters`;

/** Whether a worker can have this name. */
export function isWorkerName(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= NAME_LENGTH_MAX &&
    value.isWellFormed() && !/\p{Cc}/u.test(value);
}

export const workerName = v.custom<string, string>(isWorkerName, WORKER_NAME_FORM);
export const text = textUpTo(TEXT_LENGTH_MAX);
export const reason = textUpTo(REASON_LENGTH_MAX);
export const flag = v.boolean("true or false");
/** Counts, numbers and positions, all of which begin at 0. */
export const count = v.custom<number>(
  (value) => Number.isSafeInteger(value) && value as number >= 0,
  "a count from 0",
);
/** A count from 1 to `max`. */
export function upTo(max: number): v.GenericSchema<number> {
  return v.custom<number>(
    (value) => Number.isSafeInteger(value) && value as number >= 1 && value as number <= max,
    `a count from 1 to ${max}`,
  );
}

/** An integer of either sign. */
export const whole = v.custom<number>(Number.isSafeInteger, "a whole number");
/** A number that is only displayed. */
export const figure = v.custom<number>((value) => typeof value === "number", "a number");
/** A time. With any other number a timer would warn in the log, or fire at once. */
export const duration = v.custom<number>(
  (value) => Number.isFinite(value) && value as number >= 0,
  "a finite number of at least 0",
);
/** The request of a method that ignores its request. */
export const nothing = v.custom<null>(() => true);
/** A value that is checked elsewhere. */
export const anything = v.custom<unknown>(() => true);
export const bytes = v.instance(Uint8Array, "bytes");

/** An object with at least these fields. Checks of requests remove all others. */
export function object<const E extends v.ObjectEntries>(
  entries: E,
): v.ObjectSchema<E, "an object"> {
  return v.object(entries, "an object");
}

/** An object with these fields and no others, because the receiver stores it as it came. */
export function exactObject<const E extends v.ObjectEntries>(
  entries: E,
): v.StrictObjectSchema<E, string> {
  return v.strictObject(entries, `an object of ${Object.keys(entries).join(", ")} alone`);
}

/** A list of at most this many items. */
export function list<const S extends v.GenericSchema>(
  item: S,
  lengthMax: number = LIST_LENGTH_MAX,
): v.SchemaWithPipe<
  readonly [
    v.ArraySchema<S, "a list">,
    v.MaxLengthAction<v.InferOutput<S>[], number, string>,
  ]
> {
  const atMost = v.maxLength<v.InferOutput<S>[], number, string>(
    lengthMax,
    `a list of at most ${lengthMax} items`,
  );
  return v.pipe(v.array(item, "a list"), atMost);
}

/** One of these words. */
export function oneOf<const W extends string>(
  ...words: readonly W[]
): v.PicklistSchema<readonly W[], string> {
  return v.picklist(words, `one of ${words.join(", ")}`);
}

/** An object of one of these kinds. Its field `kind` says which. */
export function oneKindOf<const O extends v.VariantOptions<"kind">>(
  ...kinds: O
): v.VariantSchema<"kind", O, "an object of a known kind"> {
  return v.variant("kind", kinds, "an object of a known kind");
}

/** The field `kind` of the objects of one kind. */
export function kind<const W extends string>(word: W): v.LiteralSchema<W, undefined> {
  return v.literal(word);
}

/** An instance of a class. */
export function instance<C extends v.Class>(of: C): v.InstanceSchema<C, string> {
  return v.instance(of, of.name);
}

/** A value that passes a test; `what` describes such a value in errors. */
export function passing<T>(
  test: (value: unknown) => boolean,
  what: string,
): v.CustomSchema<T, string> {
  return v.custom<T, string>(test, what);
}

/** A word that is only displayed: a newer peer may send another. */
export function word<W extends string>(): v.CustomSchema<W, "a word"> {
  return v.custom<W, "a word">(
    (value) => typeof value === "string" && value.length <= NAME_LENGTH_MAX,
    "a word",
  );
}

/** A field that may be left out. */
export const optional = v.exactOptional;

/** A reference to an incarnation of an actor. The actor's protocol cannot be checked here. */
export const fencedRef = object({ node: text, path: text, incarnation: text });

/** An error as it is sent, with causes. A newer peer may send an unknown code. */
export const wireError = errorWithCauses(WIRE_ERROR_DEPTH_MAX);

function errorWithCauses(depth: number): v.GenericSchema<WireError> {
  const entries = { code: name, message: reason, details: optional(anything) };
  if (depth === 0) return object(entries) as v.GenericSchema<unknown> as typeof wireError;
  const cause = optional(errorWithCauses(depth - 1));
  return object({ ...entries, cause }) as v.GenericSchema<unknown> as typeof wireError;
}

// Types that keep schemas and protocols equal.

/** `never` for each method whose schema differs from its type. */
type Agreeing<P, S> = {
  readonly [M in MethodOf<P> & keyof S]: S[M] extends v.GenericSchema
    ? Same<Plain<v.InferInput<S[M]>>, Plain<RequestOf<P, M>>> extends true ? S[M] : never
    : never;
};

type AgreeingAnswers<P, S> = {
  readonly [M in MethodOf<P> & keyof S]: S[M] extends v.GenericSchema
    ? Same<Plain<v.InferInput<S[M]>>, Plain<AnswerOf<P, M>>> extends true ? S[M] : never
    : never;
};

/** A type without what messages do not carry: `readonly`, and the protocols of references. */
type Plain<T> = T extends Uint8Array ? Uint8Array
  : T extends WireError ? WireError
  : T extends FencedRef ? { readonly [K in keyof FencedRef & string]: string }
  : T extends readonly (infer I)[] ? readonly Plain<I>[]
  : T extends object ? { readonly [K in keyof T as K & string]: Plain<T[K]> }
  : T;

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true
  : false;
