/** Parses JSON Lines: text files with one JSON value on each line. */
import { LeatError } from "../../../core/error.ts";
import { shownText } from "../../../core/shown_text.ts";
import { parseJson } from "../../../core/json.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import { describeLine, type Line, lineDetails } from "./lines.ts";

const BLANK = /^[ \t\r]*$/;

/**
 * Parses a line; `AGAIN` for a blank one.
 *
 * @throws {LeatError} `data_loss` with the file, the line and the parser's message;
 * `resource_exhausted` for a line that nests too deep or has too many lists, objects and fields.
 */
export function parseJsonLine(line: Line, path: string): unknown {
  const { text } = line;
  if (BLANK.test(text)) return AGAIN;
  try {
    return parseJson(text);
  } catch (cause) {
    const { code, message } = LeatError.from(cause, "data_loss");
    const what = code === "data_loss" ? "is no JSON" : "cannot be read as JSON";
    throw new LeatError(
      code,
      `${describeLine(line, path)} ${what}: ${shownText(message)}.`,
      { cause, details: lineDetails(line, path) },
    );
  }
}
