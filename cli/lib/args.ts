/**
 * Parses the command line of every program: typed options with defaults, `--help`, and clear
 * errors.
 *
 * `@std/cli` reads arguments, or `node:util` if JSR cannot be reached. The package is imported by a
 * specifier that static analysis does not see, so that a program starts without it, too.
 *
 * @example
 * ```ts
 * import { flag, integer, parseCommandLine } from "./args.ts";
 *
 * const program = {
 *   usage: "deno task simulate",
 *   summary: "Runs a small cluster.",
 *   options: {
 *     quick: flag("Ends within a minute."),
 *     storageLatencyMs: integer({ help: "Added to every read.", default: 0, min: 0 }),
 *   },
 * };
 * const values = await parseCommandLine(program, ["--storage-latency-ms", "5"]);
 * if (values.quick || values.storageLatencyMs !== 5) throw new Error("unexpected");
 * ```
 */

import { parseArgs as parseNodeArgs } from "node:util";
import { LeatError } from "../../core/error.ts";

/**
 * One option of a program. Created by {@linkcode flag}, {@linkcode text}, {@linkcode integer} and
 * similar functions.
 */
export interface Option<T> {
  readonly help: string;
  /** The placeholder of the value in the help; absent for a flag, which takes none. */
  readonly placeholder?: string;
  /** Follows the help: the default, the bounds. */
  readonly remark: string;
  /** Whether the value is positional, without the option's name before it. */
  readonly isOperand?: true;
  /**
   * Parses the texts given for the option, in order; empty if it was not given. Throws a plain
   * message.
   */
  read(texts: readonly string[]): T;
}

/** The options of a program by name: `storageLatencyMs` is `--storage-latency-ms`. */
export type Options = Readonly<Record<string, Option<unknown>>>;

/** The values of options. */
export type Values<O extends Options> = {
  readonly [K in keyof O]: O[K] extends Option<infer T> ? T : never;
};

/** The description of a program. */
export interface Program<O extends Options> {
  /** How to call it, without its options: `deno task worker`. */
  readonly usage: string;
  readonly summary: string;
  readonly options: O;
  /** Printed below the options: examples, notes. */
  readonly notes?: string;
  /** Throws a {@linkcode UsageError} for values that exclude each other. */
  readonly check?: (values: Values<O>) => void;
}

/** The exit status after a wrong command line: nothing was started. */
export const EXIT_USAGE = 2;
/** The exit status after a failure. */
export const EXIT_FAILURE = 1;
/** The exit status after Ctrl-C, as shells expect. */
export const EXIT_INTERRUPTED = 130;

/** An error in the command line: an invalid value, or a missing file. */
export class UsageError extends LeatError {
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super("invalid_argument", message, options);
  }

  /**
   * The result of `read`. A {@linkcode LeatError} of it is about an option, and becomes a usage
   * error.
   */
  static async where<T>(read: () => T | Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof LeatError)) throw error;
      throw new UsageError(error.message, { cause: error.cause });
    }
  }
}

/**
 * Runs a program: reads the command line, answers `--help`, calls `main` with the values and
 * converts errors into a message and an exit status.
 */
export async function runProgram<O extends Options>(
  program: Program<O>,
  main: (values: Values<O>) => void | Promise<void>,
  args: readonly string[] = Deno.args,
): Promise<void> {
  if (wantsHelp(args)) {
    console.log(helpText(program));
    return;
  }
  try {
    await main(await parseCommandLine(program, args));
  } catch (error) {
    const isUsage = error instanceof UsageError;
    console.error(
      isUsage
        ? `error: ${error.message}\nUsage: ${usageOf(program)}; --help lists them.`
        : failureText(error),
    );
    // Not `exitCode`: sockets and threads of a failed start would keep the process alive.
    Deno.exit(isUsage ? EXIT_USAGE : EXIT_FAILURE);
  }
}

/**
 * The values of a program's options.
 * @throws {UsageError} naming the option, the value and the remedy.
 */
export async function parseCommandLine<O extends Options>(
  program: Program<O>,
  args: readonly string[],
): Promise<Values<O>> {
  const entries = Object.entries(program.options);
  const operands = entries.filter(([, o]) => o.isOperand);
  const named = new Map(
    entries.filter(([, o]) => !o.isOperand).map(([key, o]) => [kebab(key), { key, o }]),
  );
  const shape: Shape = { flags: [], valued: [] };
  for (const [name, { o }] of named) {
    (o.placeholder === undefined ? shape.flags : shape.valued).push(name);
  }
  checkFlags(args, shape.flags);
  const given = await (await loadReader())(withNegatives(args, shape.valued), shape);
  for (const [name, { o }] of named) checkPresent(name, o, given.texts.get(name) ?? []);
  for (const name of given.unknown) throw refuseUnknown(name, [...named.keys()]);
  const stray = given.positionals[operands.length];
  if (stray !== undefined) {
    throw new UsageError(`'${stray}' is not an option: options begin with --`);
  }
  const values: Record<string, unknown> = {};
  operands.forEach(([key, o], index) => {
    const word = given.positionals[index];
    values[key] = readOption(o.placeholder!, o, word === undefined ? [] : [word]);
  });
  for (const [name, { key, o }] of named) {
    values[key] = readOption(`--${name}`, o, given.texts.get(name) ?? []);
  }
  program.check?.(values as Values<O>);
  return values as Values<O>;
}

function checkPresent(name: string, option: Option<unknown>, texts: readonly string[]): void {
  const { placeholder } = option;
  if (placeholder === undefined || !texts.includes("")) return;
  throw new UsageError(
    `--${name} needs a value: --${name} ${placeholder} ` +
      `(or --${name}=${placeholder} if it begins with a dash)`,
  );
}

function readOption(name: string, option: Option<unknown>, texts: readonly string[]): unknown {
  try {
    return option.read(texts);
  } catch (error) {
    if (error instanceof Misread) throw new UsageError(`${name} ${error.message}`);
    if (error instanceof LeatError) throw new UsageError(error.message);
    throw error;
  }
}

/** Whether the command line asks for help, which takes precedence over everything else. */
export function wantsHelp(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return (end < 0 ? args : args.slice(0, end)).some((arg) => arg === "--help" || arg === "-h");
}

// ---------------------------------------------------------------------------------------------
// Kinds of options

/** The help of an option, and the placeholder of its value. */
export interface Described {
  readonly help: string;
  readonly placeholder?: string;
}

/** Deno's timers support up to 2^31 ms; some is reserved for callers that add to it. */
const WAIT_MS_MAX = 2_000_000_000;

/** An option that is given or not. */
export function flag(help: string): Option<boolean> {
  return { help, remark: "", read: (texts) => texts.length > 0 && texts.at(-1) !== "false" };
}

/** A text; `undefined` if it is not given and has no default. */
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

/** A required positional text, without a name before it. */
export function operand(
  o: Described & { readonly placeholder: string },
): Option<string> {
  return { ...text({ ...o, required: true }), isOperand: true };
}

/** A text that may be given several times; an empty list if it is not given. */
export function texts(o: Described): Option<readonly string[]> {
  return {
    help: o.help,
    placeholder: o.placeholder ?? "TEXT",
    remark: "may be repeated",
    read: (texts) => texts,
  };
}

/** One text of a few. */
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

/** Some of a few texts, with commas between them; all of them if it is not given. */
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
        throw new Misread(`has '${word}', but its parts have to be of ${choices.join(", ")}`);
      });
    },
  };
}

/** Names with commas between, each once; `undefined` if it is not given. */
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
export interface Bounds {
  readonly min?: number;
  readonly max?: number;
}

/** A whole number; `undefined` if it is not given and has no default. */
export function integer(o: Described & Bounds & { readonly default: number }): Option<number>;
export function integer(o: Described & Bounds): Option<number | undefined>;
export function integer(
  o: Described & Bounds & { readonly default?: number },
): Option<number | undefined> {
  return numeric(o, "N", "a whole number", isInteger);
}

/** Whole numbers separated by commas, distinct and ascending; `undefined` if it is not given. */
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

/** A length of time in ms, no longer than timers can wait. */
export function milliseconds(o: Described & Bounds & { readonly default: number }): Option<number> {
  return integer({ placeholder: "MS", max: WAIT_MS_MAX, ...o });
}

/** A number; `undefined` if it is not given and has no default. */
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

/** Beyond safe integers, two texts would give the same number. */
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
    throw new Misread(`is given ${texts.length} times (${texts.join(", ")}): give it once`);
  }
  return texts[0];
}

/** The predicate of an error message; its catcher adds the option's name as the subject. */
class Misread extends Error {}

// ---------------------------------------------------------------------------------------------
// Help and refusals

/** The width of the page. */
export const HELP_COLUMNS = 88;
/** Longer heads get a line of their own. */
const HEAD_COLUMNS_MAX = 30;

/** The page that `--help` prints. */
export function helpText<O extends Options>(program: Program<O>): string {
  const rows = Object.entries(program.options).map(([key, o]): [string, string] => {
    const head = o.isOperand
      ? o.placeholder!
      : `--${kebab(key)}${o.placeholder === undefined ? "" : ` ${o.placeholder}`}`;
    return [head, o.remark === "" ? o.help : `${o.help} (${o.remark})`];
  });
  rows.push(["--help, -h", "Shows this page."]);
  const heads = rows.map(([head]) => head.length).filter((length) => length <= HEAD_COLUMNS_MAX);
  const indent = 2 + Math.max(...heads) + 2;
  const lines = rows.flatMap(([head, help]) => {
    const [first = "", ...more] = wrap(help, HELP_COLUMNS - indent);
    const rest = more.map((line) => " ".repeat(indent) + line);
    return head.length > HEAD_COLUMNS_MAX
      ? [`  ${head}`, " ".repeat(indent) + first, ...rest]
      : [`  ${head}`.padEnd(indent) + first, ...rest];
  });
  const parts = [
    `Usage: ${usageOf(program)}`,
    wrap(program.summary, HELP_COLUMNS).join("\n"),
    `Options:\n${lines.join("\n")}`,
  ];
  if (program.notes !== undefined) parts.push(program.notes.trim());
  return parts.join("\n\n");
}

/** The usage line of a program. */
function usageOf<O extends Options>({ usage, options }: Program<O>): string {
  const operands = Object.values(options).filter(({ isOperand }) => isOperand);
  return [usage, ...operands.map(({ placeholder }) => placeholder), "[options]"].join(" ");
}

/** The lines of a paragraph, wrapped at `columns`; only a longer word exceeds that. */
export function wrap(paragraph: string, columns: number): string[] {
  const lines: string[] = [];
  for (const word of paragraph.split(/\s+/)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= columns) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else {
      lines.push(word);
    }
  }
  return lines;
}

function refuseUnknown(name: string, known: readonly string[]): UsageError {
  const nearest = nearestOf(name, known);
  const hint = nearest === undefined ? "" : `; did you mean --${nearest}?`;
  return new UsageError(`there is no option ${name.length === 1 ? "-" : "--"}${name}${hint}`);
}

/** The name among those known that was probably meant; undefined where none is near. */
export function nearestOf(name: string, known: readonly string[]): string | undefined {
  const [nearest] = known
    .map((candidate) => ({ candidate, distance: editDistance(name, candidate) }))
    .sort((a, b) => a.distance - b.distance);
  const isNear = nearest !== undefined && nearest.distance <= Math.max(1, name.length / 3);
  return isNear ? nearest.candidate : undefined;
}

/** Levenshtein's distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      const substituted = (row[j] ?? 0) + (a[i] === b[j] ? 0 : 1);
      next.push(Math.min(substituted, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

function failureText(error: unknown): string {
  if (!(error instanceof LeatError)) return `error: ${Deno.inspect(error)}`;
  const lines = [`error: ${error.message} (${error.code})`];
  for (let cause = error.cause; cause instanceof Error; cause = cause.cause) {
    const { message } = cause;
    const isTold = lines.at(-1)!.includes(message);
    if (!isTold) lines.push(`  because: ${message}`);
  }
  return lines.join("\n");
}

function kebab(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

// ---------------------------------------------------------------------------------------------
// The two readers

interface Shape {
  readonly flags: string[];
  readonly valued: string[];
}

/** A parsed command line; an option without its value has an empty text. */
interface Given {
  readonly texts: ReadonlyMap<string, readonly string[]>;
  readonly unknown: readonly string[];
  readonly positionals: readonly string[];
}

type Reader = (args: readonly string[], shape: Shape) => Given;

/** The part of `@std/cli/parse-args` that is used here. */
type StdParseArgs = (
  args: readonly string[],
  options: {
    boolean: readonly string[];
    string: readonly string[];
    collect: readonly string[];
    unknown: (arg: string, key?: string) => unknown;
  },
) => Record<string, unknown>;

/** Constant, but not a literal type: the compiler and Deno's module graph must not resolve it. */
const STD_PARSE_ARGS: string = "@std/cli/parse-args";

async function loadReader(): Promise<Reader> {
  let parseArgs: StdParseArgs;
  try {
    ({ parseArgs } = await import(STD_PARSE_ARGS));
  } catch {
    return readByNode;
  }
  return (args, shape) => readByStd(parseArgs, args, shape);
}

/** Reads with `@std/cli`'s `parseArgs`. */
export function readByStd(parseArgs: StdParseArgs, args: readonly string[], shape: Shape): Given {
  const unknown: string[] = [];
  const positionals: string[] = [];
  const parsed = parseArgs(args, {
    boolean: shape.flags,
    string: shape.valued,
    collect: shape.valued,
    unknown(arg, key) {
      if (key === undefined) positionals.push(arg);
      else unknown.push(key);
      return false;
    },
  });
  const found = new Map<string, readonly string[]>();
  // Words after a bare `--` are not options, and are not passed to `unknown`.
  positionals.push(...(parsed["_"] ?? []) as string[]);
  for (const name of shape.flags) if (parsed[name] === true) found.set(name, ["true"]);
  for (const name of shape.valued) found.set(name, (parsed[name] ?? []) as string[]);
  return { texts: found, unknown, positionals };
}

/** Reads with `node:util`'s `parseArgs`. */
export function readByNode(args: readonly string[], shape: Shape): Given {
  const { tokens } = parseNodeArgs({
    args: [...args],
    strict: false,
    tokens: true,
    options: {
      ...Object.fromEntries(shape.flags.map((name) => [name, { type: "boolean" as const }])),
      ...Object.fromEntries(shape.valued.map((name) => [name, { type: "string" as const }])),
    },
  });
  const found = new Map<string, string[]>();
  const unknown: string[] = [];
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const valued = shape.valued.includes(token.name);
    if (!valued && !shape.flags.includes(token.name)) {
      unknown.push(token.name);
      continue;
    }
    // A following option is not a value, as in `@std/cli`.
    const missing = valued && !token.inlineValue && token.value?.startsWith("-");
    const text = missing ? "" : token.value ?? (valued ? "" : "true");
    found.set(token.name, [...found.get(token.name) ?? [], text]);
  }
  return { texts: found, unknown, positionals };
}

/**
 * Runs before either parser: they treat a negative number as an option, but no option is named by a
 * digit.
 */
function withNegatives(args: readonly string[], valued: readonly string[]): string[] {
  const joined: string[] = [];
  const end = args.indexOf("--");
  for (const [index, arg] of args.entries()) {
    const before = joined.at(-1);
    const isValue = /^-\d/.test(arg) && before?.startsWith("--") &&
      valued.includes(before.slice(2));
    if (isValue && (end < 0 || index < end)) joined[joined.length - 1] = `${before}=${arg}`;
    else joined.push(arg);
  }
  return joined;
}

/** Runs before either parser: they treat `--flag=anything` as true. */
function checkFlags(args: readonly string[], flags: readonly string[]): void {
  for (const arg of args) {
    const [, name = "", value = ""] = /^--([^=]+)=(.*)$/.exec(arg) ?? [];
    if (flags.includes(name) && value !== "true" && value !== "false") {
      throw new UsageError(`--${name} is '${value}', but takes no value: write --${name} alone`);
    }
  }
}
