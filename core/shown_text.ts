/**
 * Text of others, as it is shown in a log or a terminal.
 *
 * @module
 */

/** Control characters, ends of line, and marks that turn the direction of what follows. */
// deno-lint-ignore no-control-regex -- they are what is looked for
const STEERING = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/**
 * A text on one line, with an escape in the place of each character that a terminal or a reader of
 * logs would act on. So no text begins a line of its own, or hides what stands before it.
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

function escaped(char: string): string {
  if (char === "\n") return "\\n";
  const code = char.charCodeAt(0);
  return code < 0x100
    ? `\\x${code.toString(16).padStart(2, "0")}`
    : `\\u${code.toString(16).padStart(4, "0")}`;
}
