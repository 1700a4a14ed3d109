/**
 * Splits a command line into options and operands. `@std/cli` does this, or `node:util` if JSR
 * cannot be reached in time.
 */

import { parseArgs as parseNodeArgs } from "node:util";
import { shellWord } from "../../core/shown_text.ts";

/** The names of the options: those without and those with a value. */
export interface Shape {
  readonly flags: string[];
  readonly valued: string[];
}

/** A parsed command line. An option that lacks its value has an empty text. */
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

/** Typed as `string`, so that the compiler and Deno's module graph do not resolve it. */
const STD_PARSE_ARGS: string = "@std/cli/parse-args";

/**
 * Limit of the wait for JSR, in ms. Where a firewall drops packets without a word, the system gives up
 * only after minutes.
 */
const IMPORT_WAIT_MS = 5_000;

/** Imports of `@std/cli` that have not ended. Each of them keeps the process alive. */
let pendingImports = 0;
let reader: Promise<Reader> | undefined;

/** Loads the parser. It tries JSR only once. */
export function loadReader(): Promise<Reader> {
  return reader ??= importReader(() => import(STD_PARSE_ARGS));
}

/** Whether the process would wait at its end for JSR, which it does not need any more. */
export function isImporting(): boolean {
  return pendingImports > 0;
}

/** Returns a reader by the imported parser, or by Deno's if the import fails or is late. */
export async function importReader(
  importStd: () => Promise<{ readonly parseArgs: StdParseArgs }>,
  waitMs = IMPORT_WAIT_MS,
): Promise<Reader> {
  pendingImports++;
  const imported = importStd().then(
    ({ parseArgs }): Reader => (args, shape) => readByStd(parseArgs, args, shape),
    () => readByNode,
  ).finally(() => pendingImports--);
  const { promise: late, resolve } = Promise.withResolvers<Reader>();
  const timer = setTimeout(() => resolve(readByNode), waitMs);
  try {
    return await Promise.race([imported, late]);
  } finally {
    clearTimeout(timer);
  }
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
  const textsOf = new Map<string, readonly string[]>();
  // Words after a bare `--` are not options, and are not passed to `unknown`.
  positionals.push(...(parsed["_"] ?? []) as string[]);
  for (const name of shape.flags) if (parsed[name] === true) textsOf.set(name, ["true"]);
  for (const name of shape.valued) textsOf.set(name, (parsed[name] ?? []) as string[]);
  return { texts: textsOf, unknown, positionals };
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
  const textsOf = new Map<string, string[]>();
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
    textsOf.set(token.name, [...textsOf.get(token.name) ?? [], text]);
  }
  return { texts: textsOf, unknown, positionals };
}

/** The command that started a program, as a shell takes it. */
export function commandOf(usage: string, args: readonly string[]): string {
  return [usage, ...args.map(shellWord)].join(" ");
}

/** Joins options and negative numbers with `=`: both parsers would treat such a number as an option. */
export function withNegatives(args: readonly string[], valued: readonly string[]): string[] {
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
