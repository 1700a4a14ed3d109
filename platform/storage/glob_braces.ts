/** Braces in glob patterns: expands them to all patterns without braces, as in a shell. */

import { LeatError } from "../../core/error.ts";
import { parseSet } from "./glob_set.ts";

/** Most patterns that one pattern with braces expands to. */
export const GLOB_ALTERNATIVES_MAX = 4_096;

/** Most characters of the expanded patterns together. */
const GLOB_EXPANDED_LENGTH_MAX = 1024 * 1024;

/** How deep braces may be nested. */
const DEPTH_MAX = 32;

/** A brace, a comma, or a run of other characters, with escaped ones and whole sets. */
type Piece = string;

/** The positions of a pair of braces and of the commas directly within it. */
interface Braces {
  readonly open: number;
  readonly commas: number[];
  close: number;
}

/**
 * The patterns without braces. Braces without a comma, and unclosed ones, are literal.
 * @throws {LeatError} `invalid_argument` beyond the limits of this module, and for a range.
 */
export function expandBraces(pattern: string): string[] {
  const pieces = cut(pattern);
  const braces = matchBraces(pieces, pattern);
  const expand = (from: number, to: number): string[] => {
    let all = [""];
    for (let at = from; at < to; at++) {
      const here = braces.get(at);
      const alternatives = here === undefined
        ? [pieces[at]!]
        : [...here.commas, here.close].flatMap((end, i) =>
          expand((i === 0 ? here.open : here.commas[i - 1]!) + 1, end)
        );
      if (all.length * alternatives.length > GLOB_ALTERNATIVES_MAX) {
        throw tooMany(pattern, `${GLOB_ALTERNATIVES_MAX} patterns (GLOB_ALTERNATIVES_MAX)`);
      }
      all = all.flatMap((before) => alternatives.map((one) => before + one));
      const length = all.reduce((sum, one) => sum + one.length, 0);
      if (length > GLOB_EXPANDED_LENGTH_MAX) {
        throw tooMany(
          pattern,
          `patterns of ${GLOB_EXPANDED_LENGTH_MAX} characters in all (GLOB_EXPANDED_LENGTH_MAX)`,
        );
      }
      at = here?.close ?? at;
    }
    return all;
  };
  return expand(0, pieces.length);
}

function cut(pattern: string): Piece[] {
  const pieces: Piece[] = [];
  let text = 0;
  // No bracket before this index is closed. Searching again for each would take quadratic time.
  let unclosed = 0;
  for (let at = 0; at < pattern.length;) {
    const letter = pattern[at]!;
    if (letter === "{" || letter === "," || letter === "}") {
      if (at > text) pieces.push(pattern.slice(text, at));
      pieces.push(letter);
      text = ++at;
    } else if (letter === "\\") at += 2;
    else if (letter === "[" && at >= unclosed) {
      const set = parseSet(pattern, at);
      if (set === undefined) {
        const slash = pattern.indexOf("/", at);
        unclosed = slash < 0 ? pattern.length : slash;
      }
      at = (set?.end ?? at) + 1;
    } else at++;
  }
  if (text < pattern.length) pieces.push(pattern.slice(text));
  return pieces;
}

/** The braces that have a comma, by the position of the opening brace. */
function matchBraces(pieces: readonly Piece[], pattern: string): Map<number, Braces> {
  const open: Braces[] = [];
  const closed = new Map<number, Braces>();
  for (const [at, piece] of pieces.entries()) {
    if (piece === "{") open.push({ open: at, commas: [], close: at });
    else if (piece === ",") open.at(-1)?.commas.push(at);
    else if (piece === "}") {
      const braces = open.pop();
      if (braces === undefined) continue;
      if (braces.commas.length === 0) {
        refuseRange(pattern, pieces.slice(braces.open, at + 1).join(""));
        continue;
      }
      if (open.length >= DEPTH_MAX) {
        throw tooMany(pattern, `${DEPTH_MAX} levels within each other`);
      }
      braces.close = at;
      closed.set(braces.open, braces);
    }
  }
  return closed;
}

function refuseRange(pattern: string, braces: string): void {
  if (!/^\{[^{}]+\.\.[^{}]+\}$/.test(braces)) return;
  throw new LeatError(
    "invalid_argument",
    `The pattern ${excerpt(pattern)} has a range in braces, ${excerpt(braces)}: write a set ` +
      "([0-9]) or all alternatives ({8,9,10}).",
  );
}

function tooMany(pattern: string, limit: string): LeatError {
  return new LeatError(
    "invalid_argument",
    `The braces of the pattern ${excerpt(pattern)} stand for more than ${limit}; use wildcards, ` +
      "or list several patterns.",
  );
}

function excerpt(text: string): string {
  return JSON.stringify(text.length <= 80 ? text : `${text.slice(0, 80)}…`);
}
