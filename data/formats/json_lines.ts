/**
 * JSON Lines: text files with one JSON value on each line.
 */

import { LeatError } from "../../core/error.ts";
import { AGAIN } from "../stepping.ts";
import type { Line } from "./lines.ts";

const BLANK = /^[ \t\r]*$/;

/**
 * The value of a line; `AGAIN` for a blank one.
 *
 * @throws {LeatError} `data_loss` naming the file, the line and what the parser found.
 */
export function parseJsonLine({ text, number }: Line, path: string): unknown {
  if (BLANK.test(text)) return AGAIN;
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new LeatError(
      "data_loss",
      `Line ${number} of ${path} is no JSON: ${LeatError.from(cause).message}.`,
      { cause, details: { path, line: number } },
    );
  }
}
