/**
 * Parses the command line of every program: typed options with defaults, `--help`, and clear
 * errors.
 *
 * `@std/cli` reads arguments, or `node:util` if JSR cannot be reached in time. The import of `@std/cli` is
 * hidden from static analysis, so that programs also start without it.
 */

import { causesOf, LeatError } from "../../core/error.ts";
import { nearestOf } from "../../core/shown_text.ts";
import { isImporting, loadReader, type Shape, withNegatives } from "./command_line.ts";
import { helpText, kebab, type Program, usageOf } from "./help.ts";
import { Misread, type Option, type Options, type Values } from "./options.ts";

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

  /** Returns the result of `read`. Converts a {@linkcode LeatError} that it throws to a usage error. */
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
 * Runs a program: reads the command line, answers `--help`, calls `main` with the values and the
 * arguments, and converts errors into a message and an exit status.
 */
export async function runProgram<O extends Options>(
  program: Program<O>,
  main: (values: Values<O>, args: readonly string[]) => void | Promise<void>,
  args: readonly string[] = Deno.args,
): Promise<void> {
  if (wantsHelp(args)) {
    console.log(helpText(program));
    return;
  }
  try {
    await main(await parseCommandLine(program, args), args);
  } catch (error) {
    const isUsageError = error instanceof UsageError;
    console.error(
      isUsageError
        ? `error: ${error.message}\nUsage: ${usageOf(program)}; --help lists them.`
        : failureText(error),
    );
    // With `exitCode`, sockets and threads of a failed start would keep the process alive.
    Deno.exit(isUsageError ? EXIT_USAGE : EXIT_FAILURE);
  }
  if (isImporting()) Deno.exit();
}

/**
 * Parses the values of a program's options.
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

function refuseUnknown(name: string, known: readonly string[]): UsageError {
  const nearest = nearestOf(name, known);
  const hint = nearest === undefined ? "" : `; did you mean --${nearest}?`;
  return new UsageError(`there is no option ${name.length === 1 ? "-" : "--"}${name}${hint}`);
}

/** The lines of a failed program: the error, and causes that say more. */
export function failureText(error: unknown): string {
  if (!(error instanceof LeatError)) return `error: ${Deno.inspect(error)}`;
  const lines = [`error: ${error.message} (${error.code})`];
  for (const { message } of causesOf(error.cause)) {
    const isRepeated = lines.some((line) => line.includes(message));
    if (!isRepeated) lines.push(`  because: ${message}`);
  }
  return lines.join("\n");
}

/** Refuses other values of flags than true and false. Both parsers treat `--flag=anything` as true. */
function checkFlags(args: readonly string[], flags: readonly string[]): void {
  for (const arg of args) {
    const [, name = "", value = ""] = /^--([^=]+)=(.*)$/.exec(arg) ?? [];
    if (flags.includes(name) && value !== "true" && value !== "false") {
      throw new UsageError(`--${name} is '${value}', but takes no value: write --${name} alone`);
    }
  }
}
