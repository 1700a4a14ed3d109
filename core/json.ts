/** Parses JSON that others wrote. */
import { LeatError } from "./error.ts";

/**
 * Limit of nested lists and objects in JSON. V8 takes more than 70 bytes for each open one, even in
 * invalid JSON.
 */
export const JSON_DEPTH_MAX = 16_384;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Parses JSON as `JSON.parse` does.
 *
 * @throws {LeatError} `resource_exhausted` for JSON that nests deeper than {@linkcode JSON_DEPTH_MAX}.
 * @throws {SyntaxError} for text that is not JSON.
 */
export function parseJson(text: string): unknown {
  const isShort = text.length <= JSON_DEPTH_MAX;
  if (isShort || !hasManyOpenings(text) || !isTooDeep(text)) return JSON.parse(text);
  throw new LeatError(
    "resource_exhausted",
    `it nests deeper than ${JSON_DEPTH_MAX} levels (JSON_DEPTH_MAX)`,
  );
}

/** Whether more lists and objects begin than may nest. Searching costs much less than parsing. */
function hasManyOpenings(text: string): boolean {
  let openings = 0;
  for (const opening of "[{") {
    for (let at = -1; (at = text.indexOf(opening, at + 1)) >= 0;) {
      if (++openings > JSON_DEPTH_MAX) return true;
    }
  }
  return false;
}

/** Counts open lists and objects up to the first error that `JSON.parse` would find, or further. */
function isTooDeep(text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at);
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > JSON_DEPTH_MAX) return true;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth--;
    }
  }
  return false;
}

/** Returns the index of the quote that ends the string which begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start;;) {
    at = text.indexOf('"', at + 1);
    if (at < 0) return text.length;
    let backslash = at - 1;
    while (text.charCodeAt(backslash) === BACKSLASH) backslash--;
    if ((at - backslash) % 2 === 1) return at;
  }
}
