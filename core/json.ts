/** Parses JSON that others wrote. */
import { LeatError } from "./error.ts";

/**
 * Limit of nested lists and objects in JSON. V8 takes more than 70 bytes for each open one, even in
 * invalid JSON.
 */
export const JSON_DEPTH_MAX = 16_384;

/**
 * Limit of the lists, objects and their fields in JSON together. V8 takes about 100 bytes for each, and
 * more while it parses; each has as few as two in the text. Numbers and texts take only a few times
 * their bytes.
 */
export const JSON_STRUCTURES_MAX = 1 << 21;

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;

/**
 * Parses JSON as `JSON.parse` does.
 *
 * @param structuresMax Limit of lists, objects and fields; `Infinity` if they were counted.
 * @throws {LeatError} `resource_exhausted` for JSON that nests deeper than {@linkcode JSON_DEPTH_MAX},
 * or has more lists, objects and fields than allowed.
 * @throws {SyntaxError} for text that is not JSON.
 */
export function parseJson(text: string, structuresMax = JSON_STRUCTURES_MAX): unknown {
  if (hasMany(text, "[{", JSON_DEPTH_MAX) && measure(text).depth > JSON_DEPTH_MAX) {
    throw exhausted(`nests deeper than ${JSON_DEPTH_MAX} levels (JSON_DEPTH_MAX)`);
  }
  if (hasManyStructures(text, structuresMax)) {
    throw exhausted(
      `has more than ${structuresMax} lists, objects and fields (JSON_STRUCTURES_MAX)`,
    );
  }
  return JSON.parse(text);
}

/** Whether JSON has more than `max` lists, objects and fields. */
export function hasManyStructures(text: string, max: number): boolean {
  return hasMany(text, "[{:", max) && measure(text).structures > max;
}

function exhausted(what: string): LeatError {
  return new LeatError("resource_exhausted", `it ${what}`);
}

/**
 * Whether some characters occur more than `max` times, also within strings. Searching costs much less
 * than parsing.
 */
function hasMany(text: string, characters: string, max: number): boolean {
  if (text.length <= max) return false;
  let count = 0;
  for (const character of characters) {
    for (let at = -1; (at = text.indexOf(character, at + 1)) >= 0;) {
      if (++count > max) return true;
    }
  }
  return false;
}

/**
 * The greatest number of open lists and objects, and the number of lists, objects and fields: up to the
 * first error that `JSON.parse` would find, or further.
 */
function measure(text: string): { depth: number; structures: number } {
  let structures = 0;
  let open = 0;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at);
        break;
      case COLON:
        structures++;
        break;
      case 0x5b: // [
      case 0x7b: // {
        structures++;
        depth = Math.max(depth, ++open);
        break;
      case 0x5d: // ]
      case 0x7d: // }
        open--;
    }
  }
  return { depth, structures };
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
