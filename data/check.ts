/** Checks operators' arguments; an error names the operator, the argument and the value. */
import { LeatError } from "../core/error.ts";
import { nearestOf, shownClass } from "../core/shown_text.ts";

function refuse(operator: string, argument: string, wanted: string, value: unknown): LeatError {
  return new LeatError(
    "invalid_argument",
    `${operator}: ${argument} must be ${wanted}, got ${show(value)}`,
  );
}

/** Limits of the characters of a text, and of the parts and levels of an array, that a message shows. */
const SHOWN_LENGTH_MAX = 100;
const SHOWN_PARTS_MAX = 8;
const SHOWN_DEPTH_MAX = 3;

/** A short rendering of any value for messages. The value may have a gigabyte, or hold itself. */
export function show(value: unknown): string {
  return shownAt(value, 0);
}

function shownAt(value: unknown, depth: number): string {
  if (typeof value === "string") {
    const isShort = value.length <= SHOWN_LENGTH_MAX;
    return isShort ? JSON.stringify(value) : `${JSON.stringify(value.slice(0, SHOWN_LENGTH_MAX))}…`;
  }
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return "a function";
  if (Array.isArray(value)) {
    if (depth === SHOWN_DEPTH_MAX) return "an array";
    const parts = Array.from(value.slice(0, SHOWN_PARTS_MAX), (part) => shownAt(part, depth + 1));
    const more = value.length - parts.length;
    return `[${parts.join(", ")}${more > 0 ? `, … ${more} more` : ""}]`;
  }
  if (typeof value !== "object" || value === null) return String(value);
  return shownClass(value);
}

/** Renders a value as {@linkcode show} does, and a plain object with its fields. */
export function showFields(value: unknown): string {
  const isPlain = typeof value === "object" && value?.constructor === Object;
  if (!isPlain) return show(value);
  const fields = Object.entries(value).slice(0, SHOWN_PARTS_MAX);
  return `{ ${fields.map(([name, field]) => `${name}: ${show(field)}`).join(", ")} }`;
}

/** The longest delay that `setTimeout()` supports. After a longer one it fires at once. */
export const TIMER_MS_MAX: number = 2 ** 31 - 1;

export function checkInteger(
  operator: string,
  argument: string,
  value: unknown,
  min: number,
  max = Number.MAX_SAFE_INTEGER,
): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < min || value > max) {
    const isOpen = max === Number.MAX_SAFE_INTEGER && !(typeof value === "number" && value > max);
    const wanted = isOpen ? `of at least ${min}` : `from ${min} to ${max}`;
    throw refuse(operator, argument, `an integer ${wanted}`, value);
  }
  return value;
}

export function checkNumber(operator: string, argument: string, value: unknown): number {
  if (typeof value !== "number" || !Number.isFinite(value)) {
    throw refuse(operator, argument, "a finite number", value);
  }
  return value;
}

/** True or false; `fallback` when left out. */
export function checkBoolean(
  operator: string,
  argument: string,
  value: unknown,
  fallback: boolean,
): boolean {
  if (value === undefined) return fallback;
  if (typeof value !== "boolean") throw refuse(operator, argument, "a boolean", value);
  return value;
}

/** True, false, or left out. */
export function checkOptionalBoolean(
  operator: string,
  argument: string,
  value: unknown,
): boolean | undefined {
  return value === undefined ? undefined : checkBoolean(operator, argument, value, false);
}

/** A seed: a bigint or a safe integer; `undefined` when left out. */
export function checkSeed(operator: string, value: unknown): bigint | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "bigint") return BigInt.asUintN(64, value);
  if (typeof value === "number" && Number.isSafeInteger(value)) {
    return BigInt.asUintN(64, BigInt(value));
  }
  // A number above the bound may be an integer whose last digits are lost.
  throw refuse(operator, "seed", "an integer from -(2^53 - 1) to 2^53 - 1, or a bigint", value);
}

/** The path of a file or folder. */
export function checkPath(operator: string, value: unknown): string {
  if (typeof value !== "string" || value === "") {
    throw refuse(operator, "path", "a non-empty string", value);
  }
  return value;
}

export function checkArray(operator: string, argument: string, value: unknown): unknown[] {
  if (!Array.isArray(value)) throw refuse(operator, argument, "an array", value);
  return value;
}

/**
 * Makes the check of an operator's options. The check refuses unknown names and anything but an
 * object. Without options it returns an empty object.
 *
 * @param names Exactly the options of `O`: the compiler checks that.
 */
export function optionsOf<O>(
  operator: string,
  names: { readonly [name in keyof Required<O>]: true },
): <P extends object>(options: P | undefined) => P {
  const known = Object.keys(names);
  return <P extends object>(options: P | undefined): P => {
    if (options === undefined) return {} as P;
    if (typeof options !== "object" || options === null || Array.isArray(options)) {
      throw refuse(operator, "options", `an object such as { ${known[0]} }`, options);
    }
    for (const [name, value] of Object.entries(options)) {
      if (value === undefined || known.includes(name)) continue;
      throw new LeatError(
        "invalid_argument",
        `${operator}: there is no option ${show(name)}; its options are ${known.join(", ")}` +
          didYouMean(name, known),
      );
    }
    return options;
  };
}

/** The end of a message that refuses an unknown name: what was probably meant, or nothing. */
export function didYouMean(name: string, known: readonly string[]): string {
  const nearest = nearestOf(name, known);
  return nearest === undefined ? "" : `; did you mean ${show(nearest)}?`;
}

/** The error for an argument that these checks do not cover. */
export { refuse as invalidArgument };
