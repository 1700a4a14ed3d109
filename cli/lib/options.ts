/** The kinds of options that a program can have: typed values with defaults and bounds. */

/**
 * One option of a program. Created by {@linkcode flag}, {@linkcode text}, {@linkcode integer} and
 * similar functions.
 */
export interface Option<T> {
  readonly help: string;
  /** The placeholder of the value in the help; absent for a flag, which takes none. */
  readonly placeholder?: string;
  /** Shown after the help: the default, the bounds. */
  readonly remark: string;
  /** Whether the value is positional, without the option's name before it. */
  readonly isOperand?: true;
  /**
   * Parses the texts of the option, in order; there are none if it was not given. Throws
   * {@linkcode Misread}.
   */
  read(texts: readonly string[]): T;
}

/** The options of a program by name: `storageLatencyMs` is `--storage-latency-ms`. */
export type Options = Readonly<Record<string, Option<unknown>>>;

export type Values<O extends Options> = {
  readonly [K in keyof O]: O[K] extends Option<infer T> ? T : never;
};

/** The help of an option, and the placeholder of its value. */
interface Described {
  readonly help: string;
  readonly placeholder?: string;
}

/** Deno's timers support up to 2^31 ms. The limit is lower, because callers add to the value. */
const WAIT_MS_MAX = 2_000_000_000;

/** An option without a value: true if it is given. */
export function flag(help: string): Option<boolean> {
  return { help, remark: "", read: (texts) => texts.length > 0 && texts.at(-1) !== "false" };
}

/** A text; `undefined` if the option is not given and has no default. */
export function text(o: Described & { readonly default: string }): Option<string>;
export function text(o: Described & { readonly required: true }): Option<string>;
export function text(o: Described): Option<string | undefined>;
export function text(
  o: Described & { readonly default?: string; readonly required?: true },
): Option<string | undefined> {
  return {
    help: o.help,
    placeholder: o.placeholder ?? "TEXT",
    remark: o.required ? "required" : remarkDefault(o.default),
    read(texts) {
      const given = single(texts) ?? o.default;
      if (given === undefined && o.required) throw new Misread("is required");
      return given;
    },
  };
}

/** The names and addresses of interfaces. */
const HOST = /^[\w.:%[\]-]+$/;

/** The name or address of an interface to listen on. */
export function host(o: Described & { readonly default: string }): Option<string>;
export function host(o: Described): Option<string | undefined>;
export function host(o: Described & { readonly default?: string }): Option<string | undefined> {
  const option = text({ ...o, placeholder: "HOST" });
  return {
    ...option,
    read(texts) {
      const given = option.read(texts);
      if (given === undefined || HOST.test(given)) return given;
      throw new Misread(`is '${given}', but has to be a host's name or address, such as 0.0.0.0`);
    },
  };
}

/** A required positional text, without a name before it. */
export function operand(
  o: Described & { readonly placeholder: string },
): Option<string> {
  return { ...text({ ...o, required: true }), isOperand: true };
}

/** Texts: the option may be repeated. An empty list if it is not given. */
export function texts(o: Described): Option<readonly string[]> {
  return {
    help: o.help,
    placeholder: o.placeholder ?? "TEXT",
    remark: "may be repeated",
    read: (texts) => texts,
  };
}

/** One of a few texts. */
export function choice<const C extends string>(
  choices: readonly C[],
  o: Described & { readonly default: C },
): Option<C> {
  return {
    help: o.help,
    placeholder: o.placeholder ?? choices.join("|"),
    remark: remarkDefault(o.default),
    read(texts) {
      const given = single(texts) ?? o.default;
      const chosen = choices.find((one) => one === given);
      if (chosen === undefined) {
        throw new Misread(`is '${given}', but has to be one of ${choices.join(", ")}`);
      }
      return chosen;
    },
  };
}

/** Some of a few texts, separated by commas; all of them if the option is not given. */
export function subset<const C extends string>(
  choices: readonly C[],
  o: Described,
): Option<readonly C[]> {
  return {
    help: o.help,
    placeholder: o.placeholder ?? "NAME,NAME,…",
    remark: `default ${choices.join(",")}`,
    read(texts) {
      const given = single(texts);
      if (given === undefined) return choices;
      return given.split(",").map((word) => {
        const chosen = choices.find((one) => one === word.trim());
        if (chosen !== undefined) return chosen;
        throw new Misread(`has '${word}', but may only have ${choices.join(", ")}`);
      });
    },
  };
}

/** Distinct names, separated by commas; `undefined` if the option is not given. */
export function names(o: Described): Option<readonly string[] | undefined> {
  return {
    help: o.help,
    placeholder: o.placeholder ?? "NAME,NAME,…",
    remark: "",
    read(texts) {
      const given = single(texts);
      const words = given?.split(",").map((word) => word.trim());
      if (words?.includes("")) {
        throw new Misread(`is '${given}', but has to be names with commas between`);
      }
      const twice = words?.find((word, index) => words.indexOf(word) < index);
      if (twice !== undefined) throw new Misread(`has '${twice}' twice: give each name once`);
      return words;
    },
  };
}

/** Bounds of a number, both inclusive. */
interface Bounds {
  readonly min?: number;
  readonly max?: number;
}

/** A whole number; `undefined` if the option is not given and has no default. */
export function integer(o: Described & Bounds & { readonly default: number }): Option<number>;
export function integer(o: Described & Bounds): Option<number | undefined>;
export function integer(
  o: Described & Bounds & { readonly default?: number },
): Option<number | undefined> {
  return numeric(o, "N", "a whole number", isInteger);
}

/** Whole numbers separated by commas, distinct and ascending; `undefined` if the option is not given. */
export function integers(
  o: Described & Bounds & { readonly placeholder: string },
): Option<readonly number[] | undefined> {
  const { min, max, placeholder, help } = o;
  const one = integer({
    help,
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
  });
  return {
    ...{ help, placeholder, remark: one.remark },
    read(texts) {
      const given = single(texts);
      if (given === undefined) return undefined;
      try {
        const numbers = given.split(",").map((text) => one.read([text.trim()])!);
        return [...new Set(numbers)].sort((a, b) => a - b);
      } catch (error) {
        if (!(error instanceof Misread)) throw error;
        const which = one.remark === "" ? "" : `, each ${one.remark}`;
        throw new Misread(
          `is '${given}', but has to be whole numbers with commas between${which}, as ${placeholder}`,
        );
      }
    },
  };
}

/** A length of time in ms, within the limit of timers. */
export function milliseconds(
  o: Described & Bounds & { readonly default: number },
): Option<number>;
export function milliseconds(o: Described & Bounds): Option<number | undefined>;
export function milliseconds(
  o: Described & Bounds & { readonly default?: number },
): Option<number | undefined> {
  return integer({ placeholder: "MS", max: WAIT_MS_MAX, ...o });
}

/** A number; `undefined` if the option is not given and has no default. */
export function number(
  o: Described & Bounds & ({ readonly default: number } | { readonly required: true }),
): Option<number>;
export function number(o: Described & Bounds): Option<number | undefined>;
export function number(
  o: Described & Bounds & { readonly default?: number; readonly required?: true },
): Option<number | undefined> {
  return numeric(o, "X", "a number", isNumber);
}

/** A share, given as percent (`2` or `2%`): from 0 to 1. */
export function percent(o: Described & { readonly default: number }): Option<number> {
  const { read, ...rest } = numeric({ ...o, min: 0, max: 100 }, "X%", "percent", isNumber);
  return { ...rest, read: (texts) => read(texts.map((text) => text.replace(/%$/, "")))! / 100 };
}

function isNumber(text: string): boolean {
  return text.trim() !== "";
}

/** Whether a text is a safe integer. Beyond these, two texts could give the same number. */
function isInteger(text: string): boolean {
  return /^[+-]?\d+$/.test(text) && Number.isSafeInteger(Number(text));
}

function numeric(
  o: Described & Bounds & { readonly default?: number; readonly required?: true },
  placeholder: string,
  what: string,
  accepts: (text: string) => boolean,
): Option<number | undefined> {
  const { min = -Infinity, max = Infinity } = o;
  const bounds = boundsText(min, max);
  return {
    help: o.help,
    placeholder: o.placeholder ?? placeholder,
    remark: [o.required ? "required" : remarkDefault(o.default), bounds].filter((part) =>
      part !== ""
    ).join(", "),
    read(texts) {
      const given = single(texts);
      if (given === undefined && o.required) throw new Misread("is required");
      if (given === undefined) return o.default;
      const value = accepts(given) ? Number(given) : NaN;
      if (!Number.isFinite(value) || value < min || value > max) {
        const wanted = bounds === "" ? what : `${what}, ${bounds}`;
        throw new Misread(`is '${given}', but has to be ${wanted}`);
      }
      return value;
    },
  };
}

function boundsText(min: number, max: number): string {
  if (min === -Infinity) return max === Infinity ? "" : `at most ${max}`;
  return max === Infinity ? `at least ${min}` : `${min} to ${max}`;
}

function remarkDefault(value: string | number | undefined): string {
  return value === undefined || value === "" ? "" : `default ${value}`;
}

function single(texts: readonly string[]): string | undefined {
  if (texts.length > 1) {
    // Without the values, which may be secrets.
    throw new Misread(`is given ${texts.length} times: give it once`);
  }
  return texts[0];
}

/** An error whose message has no subject. The code that catches it puts the option's name in front. */
export class Misread extends Error {}
