/** Makes text from other programs safe to show in a log or a terminal. */

/** Control characters, line ends, and marks that change the direction of text. */
// deno-lint-ignore no-control-regex -- these characters are searched for
const STEERING = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/**
 * Returns `text` on one line, with escapes for the characters that a terminal or a log reader would
 * act on. So text cannot start a line of its own or hide what precedes it.
 *
 * @example
 * ```ts
 * import { shownText } from "./shown_text.ts";
 *
 * shownText("done\n\x1b[2J"); // "done\\n\\x1b[2J"
 * ```
 */
export function shownText(text: string): string {
  return text.replaceAll(STEERING, escaped);
}

/** Returns the JSON of `value`, with escapes for the characters that JSON leaves as they are. */
export function shownJson(value: unknown, space?: number): string {
  // Line ends are those of the layout: JSON itself escapes those of texts.
  return JSON.stringify(value, null, space).replaceAll(
    STEERING,
    (char) => char === "\n" ? char : `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/**
 * Returns `text` as {@linkcode shownText} does, but keeps its lines. Each after the first begins with
 * spaces, so that it does not pass for a line of the program that shows it. Idempotent.
 */
export function shownLines(text: string): string {
  const [first = "", ...lines] = text.split(/\r?\n/);
  return [shownText(first), ...lines.map((line) => shownText(indented(line)))].join("\n");
}

const INDENT = "    ";

function indented(line: string): string {
  return line === "" || line.startsWith(INDENT) ? line : INDENT + line;
}

function escaped(char: string): string {
  if (char === "\n") return "\\n";
  const code = char.charCodeAt(0);
  return code < 0x100
    ? `\\x${code.toString(16).padStart(2, "0")}`
    : `\\u${code.toString(16).padStart(4, "0")}`;
}
