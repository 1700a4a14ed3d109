/** Makes text from other programs safe to show in a log or a terminal. */

/**
 * Control characters, line ends, marks that change the direction of text, and invisible characters,
 * with which two different texts look alike.
 */
const UNSAFE_CHARACTERS =
  // deno-lint-ignore no-control-regex -- these characters are searched for
  /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/**
 * Returns `text` on one line, with escapes for the characters that a terminal or a log reader would
 * act on. So `text` cannot fake a line of the log, or hide what precedes it.
 *
 * @example
 * ```ts
 * import { shownText } from "./shown_text.ts";
 *
 * shownText("done\n\x1b[2J"); // "done\\n\\x1b[2J"
 * ```
 */
export function shownText(text: string): string {
  return shownLine(text).replaceAll("\t", "\\t");
}

/** Returns a line as {@linkcode shownText} does, but keeps its tabs: those of a program's output align it. */
export function shownLine(line: string): string {
  return line.replaceAll(UNSAFE_CHARACTERS, escaped);
}

/**
 * Returns `text` as one word of a shell command, quoted if it needs that.
 *
 * @example
 * ```ts
 * import { shellWord } from "./shown_text.ts";
 *
 * `--tag ${shellWord("a b")}`; // "--tag 'a b'"
 * ```
 */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Returns the JSON of `value`, with escapes for the characters that JSON leaves as they are. */
export function shownJson(value: unknown, space?: number): string {
  // Line ends here come from the indentation by `space`: JSON escapes those inside strings.
  return JSON.stringify(value, null, space).replaceAll(
    UNSAFE_CHARACTERS,
    (char) => char === "\n" ? char : `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/**
 * Returns `text` as {@linkcode shownText} does, but keeps its lines. Lines after the first are
 * indented, so that they cannot be taken for lines of the program that shows them. Idempotent.
 */
export function shownLines(text: string): string {
  const [first = "", ...lines] = text.split(/\r?\n/);
  return [shownLine(first), ...lines.map((line) => shownLine(indented(line)))].join("\n");
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

/** Characters after a URL that belong to the sentence around it. */
const BEHIND_URL = "().,:;'\"";

/**
 * Returns a file's path for messages. A URL loses its user, password, query and fragment, which may
 * be secrets, such as the signature of a signed URL. Local paths stay as they are. `s3://` and `gs://`
 * URLs have no query, and keep `?` and `#`, which may be part of a key.
 *
 * @example
 * ```ts
 * import { shownPath } from "./shown_text.ts";
 *
 * shownPath("https://user:password@host/file?signature=0"); // "https://host/file?…"
 * ```
 */
export function shownPath(path: string): string {
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(path)?.[1]?.toLowerCase();
  if (scheme === undefined || scheme === "file") return path;
  const anonymous = path.replace(/^([^/]*\/\/)[^/?#]*@/, "$1");
  return scheme === "s3" || scheme === "gs" ? anonymous : anonymous.replace(/[?#].*$/s, "?…");
}

/** Returns text of another program, in which each URL is as {@linkcode shownPath} returns it. */
export function shownUrls(text: string): string {
  return text.replaceAll(/\b[a-z][a-z0-9+.-]{0,30}:\/\/\S+/gi, (found) => {
    let length = found.length;
    while (BEHIND_URL.includes(found[length - 1]!)) length--;
    return shownPath(found.slice(0, length)) + found.slice(length);
  });
}

/**
 * Returns a copy of another program's error and its causes, with {@linkcode shownUrls} applied to their
 * messages. The copy has no stack traces, because these repeat the messages.
 */
export function withShownUrls(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const shown = new Error(
    shownUrls(error.message),
    error.cause === undefined ? undefined : { cause: withShownUrls(error.cause) },
  );
  shown.name = error.name;
  shown.stack = `${shown.name}: ${shown.message}`;
  return shown;
}
