/**
 * Checks of what comes from elsewhere: the shape of a request is looked at before a handler sees it, so
 * that no handler meets what its types exclude. Fields that a method does not know are let be: a peer may
 * be newer. What a request means is its handler's to judge.
 *
 * @module
 */
import * as v from "valibot";
import { LeatError, type WireError } from "../../core/error.ts";
import { guardOf } from "./guard.ts";
import type { MethodOf, RequestOf } from "./protocol.ts";
import type { FencedRef } from "./ref.ts";

/** Looks at a request: what is wrong with it, if anything is. */
export type Check = (request: unknown) => LeatError | undefined;

/** What looks at the requests of each method. */
export type Checks<P> = { readonly [M in MethodOf<P>]: Check };

/** A schema for each method. */
type Schemas<P> = { readonly [M in MethodOf<P>]: v.GenericSchema };

/**
 * Makes checks of schemas. One that does not say the same as the type of its method's request does not
 * compile, whichever of the two says more.
 *
 * @example
 * ```ts
 * import { checksOf, count, object } from "./checks.ts";
 *
 * interface Counter {
 *   add(request: { readonly amount: number }): null;
 * }
 * const checks = checksOf<Counter>()({ add: object({ amount: count }) });
 * if (checks.add({ amount: 1 }) !== undefined) throw new Error("A count is an amount");
 * const error = checks.add({ amount: "1" });
 * if (error?.message !== 'add: amount must be a count from 0, got "1"') throw error;
 * ```
 */
export function checksOf<P>(): <S extends Schemas<P>>(schemas: S & Agreeing<P, S>) => Checks<P> {
  return (schemas) => {
    const checks = Object.entries<v.GenericSchema>(schemas).map(([method, schema]) => {
      const fits = guardOf(schema);
      const check: Check = (request) => fits(request) ? undefined : fault(method, schema, request);
      return [method, check] as const;
    });
    return Object.fromEntries(checks) as Checks<P>;
  };
}

/** One that is wrong is looked at no further than to the first fault. */
const FIRST_FAULT = { abortEarly: true } as const;
/** Characters of what was found that are shown. */
const SHOWN_LENGTH = 60;
const OBJECTS: readonly string[] = ["object", "strict_object"];

function fault(method: string, schema: v.GenericSchema, request: unknown): LeatError | undefined {
  const { issues } = v.safeParse(schema, request, FIRST_FAULT);
  if (issues === undefined) return undefined;
  const [issue] = issues;
  const place = v.getDotPath(issue) ?? "the request";
  const { received } = issue;
  const shown = received.length > SHOWN_LENGTH ? `${received.slice(0, SHOWN_LENGTH)}…` : received;
  const length = typeof issue.input === "string" && shown !== received
    ? `${issue.input.length} characters: `
    : "";
  // Of what is missing the schema around it tells.
  const text = OBJECTS.includes(issue.type) && issue.path?.at(-1)?.value === undefined &&
      place !== "the request"
    ? `${place} is missing`
    : `${place} must be ${issue.message}, got ${length}${shown}`;
  return new LeatError("invalid_argument", `${method}: ${text}`, {
    details: { method, path: place },
  });
}

// What requests are made of. The message of each says what is expected.

// Receivers keep much of what they are sent, so every text and every list has a bound.

/** Characters of a name: of a job, a dataset, a worker, a tag, a request. */
export const NAME_LENGTH_MAX = 1_024;
/** Characters of a text that is no name, such as the path of a folder. */
export const TEXT_LENGTH_MAX = 4_096;
/** Characters of a text that says what went wrong. */
export const REASON_LENGTH_MAX = 65_536;
/** Items of a list. */
export const LIST_LENGTH_MAX = 65_536;

/** A text of at most so many characters (UTF-16 code units). */
export function textUpTo(lengthMax: number): v.CustomSchema<string, string> {
  return v.custom<string, string>(
    // A text without UTF-8 can be neither sent nor journaled.
    (value) => typeof value === "string" && value.length <= lengthMax && value.isWellFormed(),
    `a text of at most ${lengthMax} characters`,
  );
}

export const name = textUpTo(NAME_LENGTH_MAX);
export const text = textUpTo(TEXT_LENGTH_MAX);
export const reason = textUpTo(REASON_LENGTH_MAX);
export const flag = v.boolean("true or false");
/** Counts, numbers and places, all of which begin at 0. */
export const count = v.custom<number>(
  (value) => Number.isSafeInteger(value) && value as number >= 0,
  "a count from 0",
);
/** What counts from anywhere. */
export const whole = v.custom<number>(Number.isSafeInteger, "a whole number");
/** A number of which people are told. */
export const figure = v.custom<number>((value) => typeof value === "number", "a number");
/** The request of a method that has no use for one: whatever it is. */
export const nothing = v.custom<null>(() => true);
/** What somebody else judges. */
export const anything = v.custom<unknown>(() => true);
export const bytes = v.instance(Uint8Array, "bytes");

/** An object with at least these fields. */
export function object<const E extends v.ObjectEntries>(
  entries: E,
): v.ObjectSchema<E, "an object"> {
  return v.object(entries, "an object");
}

/** An object with these fields and no others: the receiver keeps it as it came. */
export function exactObject<const E extends v.ObjectEntries>(
  entries: E,
): v.StrictObjectSchema<E, string> {
  return v.strictObject(entries, `an object of ${Object.keys(entries).join(", ")} alone`);
}

/** A list of at most so many items. */
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

/** A word of which people are told: a newer peer may say another. */
export function word<W extends string>(): v.CustomSchema<W, "a word"> {
  return v.custom<W, "a word">(
    (value) => typeof value === "string" && value.length <= NAME_LENGTH_MAX,
    "a word",
  );
}

/** A field that may be left out. */
export const optional = v.exactOptional;

/** An actor's life. What protocol it speaks is not seen from here. */
export const fencedRef = object({ node: text, path: text, incarnation: text });

/** An error as it travels. Its code may be a newer peer's. */
export const wireError = v.custom<WireError>(
  (value) => v.is(ERROR, value),
  "an error with a code and a message",
);
const ERROR = object({ code: name, message: reason });

// What keeps schemas and types the same.

/** Of each method whose schema says something else than its type: nothing fits there. */
type Agreeing<P, S> = {
  readonly [M in MethodOf<P> & keyof S]: S[M] extends v.GenericSchema
    ? Same<Plain<v.InferInput<S[M]>>, Plain<RequestOf<P, M>>> extends true ? S[M] : never
    : never;
};

/** What of a type can be seen in a message: nobody writes to one, and a reference's protocol is no part of it. */
type Plain<T> = T extends Uint8Array ? Uint8Array
  : T extends WireError ? WireError
  : T extends FencedRef ? { readonly [K in keyof FencedRef & string]: string }
  : T extends readonly (infer I)[] ? readonly Plain<I>[]
  : T extends object ? { readonly [K in keyof T as K & string]: Plain<T[K]> }
  : T;

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true
  : false;
