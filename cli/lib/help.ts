/** The page that `--help` prints. */

import type { Options, Values } from "./options.ts";
import { wrap } from "./text.ts";

export interface Program<O extends Options> {
  /** The command that starts the program, without its options: `deno task worker`. */
  readonly usage: string;
  readonly summary: string;
  readonly options: O;
  /** Printed below the options: examples, notes. */
  readonly notes?: string;
  /** Throws a {@linkcode UsageError} for values that exclude each other. */
  readonly check?: (values: Values<O>) => void;
}

/** The width of the page. */
export const HELP_COLUMNS = 88;
/** Limit of the length of an option that has its help on the same line. */
const HEAD_COLUMNS_MAX = 30;

/** Renders the page that `--help` prints. */
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
export function usageOf<O extends Options>({ usage, options }: Program<O>): string {
  const operands = Object.values(options).filter(({ isOperand }) => isOperand);
  return [usage, ...operands.map(({ placeholder }) => placeholder), "[options]"].join(" ");
}

export function kebab(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
