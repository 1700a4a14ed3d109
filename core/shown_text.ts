/**
 * Text for messages: makes text from other programs safe to show in a log or a terminal, and finds the
 * name that was probably meant.
 */

/**
 * Control characters, line ends, marks that change the direction of text, and invisible characters,
 * with which two different texts look alike.
 */
const UNSAFE_CHARACTERS =
  // deno-lint-ignore no-control-regex -- these characters are searched for
  /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

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

/** Returns the name of an object's class. That of a generator is only in its tag. */
export function shownClass(value: object): string {
  const tag = Object.prototype.toString.call(value).slice("[object ".length, -1);
  return value.constructor?.name || (tag === "Object" ? "an object" : tag);
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
    (char) => char === "\n" ? char : unitsOf(char),
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
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : unitsOf(char);
}

/** The escapes of a character's UTF-16 code units, as in JSON. */
function unitsOf(char: string): string {
  return char.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
}

/**
 * The start of a URL that may hold secrets: its scheme, and the slashes behind it. The URL standard
 * takes any number of slashes or backslashes behind the schemes of the web.
 */
const FAR_SCHEME = String.raw`(?:https?|wss?|ftp):[\\/]*|(?!file:)[a-z][a-z0-9+.-]{1,30}:[\\/]{2,}`;

/** The characters at the start of a URL, and inside it, that the URL standard ignores. */
const IGNORED_IN_URLS = /^[\0-\x20]+|[\t\n\r]+/g;

const FAR_URL = new RegExp(`^(${FAR_SCHEME})(.*)$`, "is");

/** The start of a URL in a text. With all slashes: a search that tried fewer, too, would take longer. */
const URL_START = new RegExp(String.raw`\b(?:${FAR_SCHEME})(?![\\/])`, "gis");

/**
 * The end of a quotation, for each quotation mark. A mark inside a URL ends nothing, unless white space
 * follows, or brackets and then white space.
 */
const QUOTATION_ENDS: ReadonlyMap<string, RegExp> = new Map(
  [`"`, "'", "`"].map((mark) => [mark, new RegExp(String.raw`${mark}[().,:;\]}>]*(?=\s|$)`, "g")]),
);

/** A host without a port, a user or a password. A name without a dot may be a user. */
const HOST_WITH_DOT = /^[\p{L}\p{M}\p{N}_-]+(?:\.[\p{L}\p{M}\p{N}_-]+)+\.?(?:[\\/]|$)/u;

/** What can be the host and port of a URL. Anything else may be a user or a password. */
const HOST_AND_PORT = /^(?:\[[\da-f:.]+\]|[\p{L}\p{M}\p{N}_.-]*)(?::\d*)?(?:[\\/]|$)/iu;

/** Characters after a URL that belong to the sentence around it. */
const BEHIND_URL = "().,:;'\"`";

/**
 * Returns a file's path for messages. A URL loses its user, password, query and fragment, which may
 * be secrets, such as the signature of a signed URL. Local paths stay as they are. `s3://` and `gs://`
 * URLs have no query, and keep `?` and `#`, which may be part of a key.
 *
 * A misspelt URL may have `/`, `?` or `@` in its password. So all that precedes the last `@` is left
 * out, unless the URL begins with a host's name: one with a dot and without a port. Idempotent.
 *
 * @example
 * ```ts
 * import { shownPath } from "./shown_text.ts";
 *
 * shownPath("https://user:password@host/file?signature=0"); // "https://host/file?…"
 * ```
 */
export function shownPath(path: string): string {
  const [, scheme, rest] = FAR_URL.exec(path.replaceAll(IGNORED_IN_URLS, "")) ?? [];
  if (scheme === undefined || rest === undefined) return path;
  const isObject = /^(?:s3|gs):/i.test(scheme);
  const queryAt = isObject ? -1 : rest.search(/[?#]/);
  const [named, query] = queryAt < 0 ? [rest, ""] : [rest.slice(0, queryAt), "?…"];
  const hasPlainHost = (isObject ? /^[^\\/:@]*(?:[\\/]|$)/ : HOST_WITH_DOT).test(named);
  const userEnd = hasPlainHost ? -1 : rest.lastIndexOf("@");
  // Either the password has "?" or "#" in it, or the query has "@".
  if (userEnd >= named.length) return `${scheme}…`;
  const user = rest.slice(0, Math.max(userEnd, 0));
  const place = named.slice(userEnd + 1);
  if (!hasPlainHost && !HOST_AND_PORT.test(place)) return `${scheme}…`;
  return `${scheme}${/[\\/…]/.test(user) ? "…@" : ""}${place}${query}`;
}

/**
 * Returns what a user gave as a service's address, for messages: without a user, a password, and a
 * query such as the `?token=…` of a page. Unlike {@linkcode shownPath} it expects no path, and reads
 * addresses without a scheme.
 */
export function shownAddress(text: string): string {
  return text.replace(/^([a-z]+:\/\/)?.*@/is, "$1…@").replace(/[?#].*$/s, "?…");
}

/**
 * Returns text of another program, in which each URL is as {@linkcode shownPath} returns it.
 *
 * @param known A URL that `text` may name; it is found in any spelling.
 */
export function shownUrls(text: string, known = ""): string {
  const rest = known === "" ? text : text.replaceAll(known, () => shownPath(known));
  let shown = "";
  let from = 0;
  for (const [start, end] of urlsIn(rest)) {
    let urlEnd = end;
    while (BEHIND_URL.includes(rest[urlEnd - 1]!)) urlEnd--;
    shown += rest.slice(from, start) + shownPath(rest.slice(start, urlEnd));
    from = urlEnd;
  }
  return shown + rest.slice(from);
}

/**
 * Yields where each URL of a text begins and ends: it ends with the quotation that it begins, or else
 * at the first white space. Searches no part of the text twice, so that a hostile one takes linear time.
 */
function* urlsIn(text: string): Generator<readonly [start: number, end: number]> {
  const quotations = new QuotationEnds(text);
  let found = nextMatch(URL_START, text, 0);
  while (found !== null) {
    const start = found.index;
    const schemeEnd = start + found[0].length;
    const quotationEnd = quotations.after(text.charAt(start - 1), schemeEnd);
    const end = quotationEnd ?? nextMatch(/\s|$/g, text, schemeEnd)!.index;
    const isScheme = quotationEnd === undefined && end === schemeEnd;
    if (!isScheme) yield [start, end];
    found = nextMatch(URL_START, text, isScheme ? start + 1 : end);
  }
}

/** Finds the ends of a text's quotations, for positions in ascending order. */
class QuotationEnds {
  readonly #text: string;
  /** The next end for each quotation mark; infinite after the last one. */
  readonly #next = new Map<string, number>();

  constructor(text: string) {
    this.#text = text;
  }

  /** The end of a quotation that began before `from`; undefined if `mark` begins none, or it has no end. */
  after(mark: string, from: number): number | undefined {
    const pattern = QUOTATION_ENDS.get(mark);
    if (pattern === undefined) return undefined;
    let end = this.#next.get(mark) ?? 0;
    if (end < from) end = nextMatch(pattern, this.#text, from)?.index ?? Infinity;
    this.#next.set(mark, end);
    return end === Infinity ? undefined : end;
  }
}

function nextMatch(pattern: RegExp, text: string, from: number): RegExpExecArray | null {
  pattern.lastIndex = from;
  return pattern.exec(text);
}

/** Returns the known name that was probably meant; undefined if none is near. */
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
