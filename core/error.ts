/** The error class of Leat, with gRPC's codes, and its plain-data form for the wire. */
import { shownLines, shownUrls } from "./shown_text.ts";

/** The gRPC canonical codes, in snake case. `ok` is absent: success throws nothing. */
export const LEAT_ERROR_CODES = [
  "cancelled",
  "unknown",
  "invalid_argument",
  "deadline_exceeded",
  "not_found",
  "already_exists",
  "permission_denied",
  "resource_exhausted",
  "failed_precondition",
  "aborted",
  "out_of_range",
  "unimplemented",
  "internal",
  "unavailable",
  "data_loss",
  "unauthenticated",
] as const;

/** A gRPC canonical status code in snake case. */
export type LeatErrorCode = typeof LEAT_ERROR_CODES[number];

/** What a {@linkcode LeatError} carries besides code and message. */
export interface LeatErrorOptions {
  /** The error that caused this one. */
  readonly cause?: unknown;
  /** Plain data for programs; the message is for people. */
  readonly details?: Record<string, unknown>;
}

/** A {@linkcode LeatError} as plain data, for msgpack, structured clone and the journal. */
export interface WireError {
  /** Its code. */
  code: LeatErrorCode;
  /** Its message. */
  message: string;
  /** Plain data for programs. */
  details?: Record<string, unknown>;
  /** The error that caused it. */
  cause?: WireError;
}

/** How many nested causes, and how many levels of `details`, are sent. Deeper ones are cut off. */
export const WIRE_ERROR_DEPTH_MAX = 8;

/** Characters of a message that are sent. The rest is cut off. */
export const WIRE_MESSAGE_LENGTH_MAX = 16_384;

/**
 * An error with a canonical code.
 *
 * @example
 * ```ts
 * import { LeatError } from "./error.ts";
 *
 * try {
 *   throw new LeatError("not_found", "no dataset 'images'; register it first");
 * } catch (error) {
 *   if (LeatError.from(error).code !== "not_found") throw error;
 * }
 * ```
 */
export class LeatError extends Error {
  /** `"LeatError"`. */
  override readonly name = "LeatError";
  /** What kind of failure it is. */
  readonly code: LeatErrorCode;
  /** Plain data for programs; which keys it has depends on the error. */
  declare readonly details?: Record<string, unknown>;

  /** An error with a code, and a message for people. */
  constructor(code: LeatErrorCode, message: string, options: LeatErrorOptions = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.code = code;
    if (options.details !== undefined) this.details = options.details;
  }

  /**
   * Turns any thrown value into a `LeatError`. Returns a `LeatError` as it is. Anything else becomes
   * the `cause` of a new one, whose code follows from the `name` of the value (`TimeoutError` is
   * `deadline_exceeded`) or is `fallbackCode`.
   */
  static from(error: unknown, fallbackCode: LeatErrorCode = "unknown"): LeatError {
    if (error instanceof LeatError) return error;
    return new LeatError(codeOf(error, fallbackCode), messageOf(error), { cause: error });
  }

  /**
   * Whether a value is an instance. A proxy that throws when it is asked is none: a user's function may
   * throw any value.
   *
   * @ignore
   */
  static override [Symbol.hasInstance](value: unknown): boolean {
    try {
      return Function.prototype[Symbol.hasInstance].call(this, value);
    } catch {
      return false;
    }
  }

  /** This error and its causes as plain data. Details that are not plain data become strings. */
  toWire(): WireError {
    return wireOf(this, 0);
  }

  /**
   * Reads what {@linkcode LeatError.toWire} wrote. Never throws: a missing or unknown code
   * becomes `unknown`.
   */
  static fromWire(wire: WireError): LeatError {
    return errorOf(wire, 0);
  }
}

/** An error and its causes that are errors, outermost first. Causes may be circular: deep ones are left out. */
export function causesOf(error: unknown): Error[] {
  const errors: Error[] = [];
  for (let next = error; Error.isError(next) && errors.length <= WIRE_ERROR_DEPTH_MAX;) {
    errors.push(next);
    next = fieldOf(next, "cause");
  }
  return errors;
}

/** Follows `cause` to the last error of the chain: `error` itself if it has none. */
export function innermostCause(error: unknown): unknown {
  return causesOf(error).at(-1) ?? error;
}

/**
 * Returns a copy of another program's error and its causes, with {@linkcode shownUrls} applied to their
 * messages. The copy has no stack traces, because these repeat the messages.
 *
 * @param known A URL that the messages may name.
 */
export function withShownUrls(error: unknown, known?: string, depth = 0): unknown {
  if (!Error.isError(error)) return error;
  const cause = fieldOf(error, "cause");
  const name = fieldOf(error, "name");
  const shown = new Error(
    shownUrls(messageOf(error), known),
    cause === undefined || depth >= WIRE_ERROR_DEPTH_MAX
      ? undefined
      : { cause: withShownUrls(cause, known, depth + 1) },
  );
  if (typeof name === "string") shown.name = name;
  shown.stack = `${shown.name}: ${shown.message}`;
  return shown;
}

/** A field of a thrown value; undefined if reading it throws. */
export function fieldOf(value: unknown, field: keyof WireError | "name" | "stack"): unknown {
  try {
    return (value as Record<string, unknown>)[field];
  } catch {
    return undefined;
  }
}

const CODES: ReadonlySet<unknown> = new Set(LEAT_ERROR_CODES);

/** Codes by name, not by class, so that errors of another realm or runtime are recognised too. */
const CODE_OF_NAME: ReadonlyMap<string, LeatErrorCode> = new Map([
  ["AbortError", "cancelled"],
  ["TimeoutError", "deadline_exceeded"],
  ["TimedOut", "deadline_exceeded"],
  ["NotFound", "not_found"],
  ["AlreadyExists", "already_exists"],
  ["PermissionDenied", "permission_denied"],
  ["NotCapable", "permission_denied"],
  ["ConnectionRefused", "unavailable"],
  ["ConnectionReset", "unavailable"],
  ["ConnectionAborted", "unavailable"],
  ["BrokenPipe", "unavailable"],
]);

function codeOf(error: unknown, fallbackCode: LeatErrorCode): LeatErrorCode {
  if (typeof error !== "object" || error === null) return fallbackCode;
  if (isRangeError(error, OUT_OF_MEMORY)) return "resource_exhausted";
  if (fallbackCode === "unknown" && isRangeError(error, STACK_OVERFLOW)) return "invalid_argument";
  const name = fieldOf(error, "name");
  return (typeof name === "string" && CODE_OF_NAME.get(name)) || fallbackCode;
}

/**
 * What V8 says when it gets no memory for an array buffer or a WebAssembly memory, and when an array
 * or a text is longer than it supports. A short or negative length is the caller's mistake.
 */
const OUT_OF_MEMORY =
  /allocation failed|could not allocate memory|Invalid string length|Invalid typed array length: \d{10}/;

/** What V8 says when calls nest too deep. */
const STACK_OVERFLOW = /^Maximum call stack size exceeded$/;

function isRangeError(error: unknown, sentence: RegExp): boolean {
  if (!Error.isError(error) || fieldOf(error, "name") !== "RangeError") return false;
  const message = fieldOf(error, "message");
  return typeof message === "string" && sentence.test(message);
}

function messageOf(error: unknown): string {
  const message = Error.isError(error) ? fieldOf(error, "message") : undefined;
  if (typeof message !== "string") return describe(error);
  if (isRangeError(error, OUT_OF_MEMORY)) {
    return `${message}: make batches or other arrays smaller, or give this process more memory`;
  }
  if (!isRangeError(error, STACK_OVERFLOW)) return message;
  return `${message}: a dataset or a value nests too deep, or a function calls itself without end`;
}

/**
 * `String(value)`, or a substitute if that throws (no prototype, a hostile `toString`). Of a plain
 * object, for which it would say nothing, the message or the keys.
 */
function describe(value: unknown): string {
  try {
    const text = String(value);
    if (text !== "[object Object]") return text;
    const { message } = value as { message?: unknown };
    return typeof message === "string"
      ? message
      : `an object of {${Object.keys(value as object).join(", ")}}`;
  } catch {
    return `a value of type ${typeof value} that has no text`;
  }
}

function wireOf(error: unknown, depth: number): WireError {
  // Half a surrogate pair has no UTF-8 encoding, so the error could not be sent.
  const message = cut(messageOf(error)).toWellFormed();
  const wire: WireError = { code: codeOf(error, "unknown"), message };
  if (!Error.isError(error)) return wire;
  if (error instanceof LeatError) {
    const code = fieldOf(error, "code");
    wire.code = CODES.has(code) ? code as LeatErrorCode : "unknown";
    const details = plainDetails(error);
    if (details !== undefined) wire.details = details;
  } else {
    const name = fieldOf(error, "name");
    if (typeof name === "string" && name !== "Error") wire.message = `${name}: ${message}`;
  }
  const cause = fieldOf(error, "cause");
  if (cause !== undefined && depth < WIRE_ERROR_DEPTH_MAX) wire.cause = wireOf(cause, depth + 1);
  return wire;
}

/** The details as plain data; undefined if there are none, or if reading them throws. */
function plainDetails(error: LeatError): Record<string, unknown> | undefined {
  try {
    const { details } = error;
    return details === undefined ? undefined : plainOf(details, 0) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

function cut(message: string): string {
  if (message.length <= WIRE_MESSAGE_LENGTH_MAX) return message;
  return `${message.slice(0, WIRE_MESSAGE_LENGTH_MAX)}…`;
}

/** Turns values that cannot be sent into text, because an error must always be sendable. */
function plainOf(value: unknown, depth: number): unknown {
  if (value === null || ["number", "boolean"].includes(typeof value)) return value;
  if (typeof value === "bigint" && BigInt.asIntN(64, value) === value) return value;
  // `String(bytes)` would be several times as long as the bytes.
  if (ArrayBuffer.isView(value)) return Object.prototype.toString.call(value);
  if (typeof value !== "object" || depth >= WIRE_ERROR_DEPTH_MAX) {
    return cut(describe(value)).toWellFormed();
  }
  if (Array.isArray(value)) return value.map((item) => plainOf(item, depth + 1));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    return cut(describe(value)).toWellFormed();
  }
  const entries = Object.entries(value).filter(([key]) => key !== "__proto__");
  return Object.fromEntries(
    entries.map(([key, item]) => [key.toWellFormed(), plainOf(item, depth + 1)]),
  );
}

function errorOf(wire: unknown, depth: number): LeatError {
  const parts = (typeof wire === "object" && wire !== null ? wire : {}) as Partial<WireError>;
  const code = CODES.has(parts.code) ? parts.code as LeatErrorCode : "unknown";
  // The message may come from an untrusted function.
  const message = shownLines(typeof parts.message === "string" ? parts.message : describe(wire));
  const error = new LeatError(code, message, {
    ...(typeof parts.details === "object" && parts.details !== null
      ? { details: parts.details }
      : {}),
    ...(parts.cause !== undefined && depth < WIRE_ERROR_DEPTH_MAX
      ? { cause: errorOf(parts.cause, depth + 1) }
      : {}),
  });
  // This program's stack would only show where the error was received.
  error.stack = `${error.name}: ${message}`;
  return error;
}
