/** Parses JSON Lines: text files with one JSON value on each line. */
import { LeatError } from "../../../core/error.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import { describeLine, type Line, lineDetails } from "./lines.ts";

const BLANK = /^[ \t\r]*$/;

/**
 * Parses a line; `AGAIN` for a blank one.
 *
 * @throws {LeatError} `data_loss` with the file, the line and the parser's message.
 */
export function parseJsonLine(line: Line, path: string): unknown {
  const { text } = line;
  if (BLANK.test(text)) return AGAIN;
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new LeatError(
      "data_loss",
      `${describeLine(line, path)} is no JSON: ${LeatError.from(cause).message}.`,
      { cause, details: lineDetails(line, path) },
    );
  }
}
