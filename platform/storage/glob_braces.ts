/** Braces in glob patterns: expands them to all patterns without braces, as in a shell. */

import { LeatError } from "../../core/error.ts";
import { parseSet } from "./glob_set.ts";

/** Limit of the patterns that one pattern with braces expands to. */
export const GLOB_ALTERNATIVES_MAX = 4_096;

/** Limit of the characters of all expanded patterns together. */
const GLOB_EXPANDED_LENGTH_MAX = 1024 * 1024;

/** Limit of the depth of nested braces. */
const DEPTH_MAX = 32;

/** A brace, a comma, or a run of other characters. Runs include escaped characters and whole sets. */
type Piece = string;

/** The positions of a pair of braces and of the commas directly within it. */
interface Braces {
  readonly open: number;
  readonly commas: number[];
  close: number;
}

/**
 * Returns the patterns without braces. Braces without a comma, and unclosed ones, are literal.
 * @throws {LeatError} `invalid_argument` beyond the limits of this module, and for a range (`{1..9}`).
 */
export function expandBraces(pattern: string): string[] {
  const pieces = cut(pattern);
  const braces = matchBraces(pieces, pattern);
  const expand = (from: number, to: number): string[] => {
    let expanded = [""];
    for (let at = from; at < to; at++) {
      const group = braces.get(at);
      const alternatives = group === undefined
        ? [pieces[at]!]
        : [...group.commas, group.close].flatMap((end, i) =>
          expand((i === 0 ? group.open : group.commas[i - 1]!) + 1, end)
        );
      if (expanded.length * alternatives.length > GLOB_ALTERNATIVES_MAX) {
        throw tooMany(
          pattern,
          `expand to more than ${GLOB_ALTERNATIVES_MAX} patterns (GLOB_ALTERNATIVES_MAX)`,
        );
      }
      expanded = expanded.flatMap((prefix) => alternatives.map((text) => prefix + text));
      const length = expanded.reduce((sum, text) => sum + text.length, 0);
      if (length > GLOB_EXPANDED_LENGTH_MAX) {
        throw tooMany(
          pattern,
          `expand to more than ${GLOB_EXPANDED_LENGTH_MAX} characters (GLOB_EXPANDED_LENGTH_MAX)`,
        );
      }
      at = group?.close ?? at;
    }
    return expanded;
  };
  return expand(0, pieces.length);
}

function cut(pattern: string): Piece[] {
  const pieces: Piece[] = [];
  let text = 0;
  // No bracket before this index is closed. A search for each bracket would take quadratic time.
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
        if (at - braces.open === 2) refuseRange(pattern, pieces[at - 1]!);
        continue;
      }
      if (open.length >= DEPTH_MAX) {
        throw tooMany(pattern, `have more than ${DEPTH_MAX} levels`);
      }
      braces.close = at;
      closed.set(braces.open, braces);
    }
  }
  return closed;
}

/** @param text What is between two braces, without others. */
function refuseRange(pattern: string, text: string): void {
  if (/[{}]/.test(text) || !/[^]\.\.[^]/.test(text)) return;
  throw new LeatError(
    "invalid_argument",
    `The pattern ${excerpt(pattern)} has a range in braces, ${excerpt(`{${text}}`)}: write a set ` +
      "([0-9]) or all alternatives ({8,9,10}).",
  );
}

function tooMany(pattern: string, what: string): LeatError {
  const shown = excerpt(pattern);
  return new LeatError(
    "invalid_argument",
    `The braces of the pattern ${shown} ${what}; use wildcards, or list several patterns.`,
  );
}

function excerpt(text: string): string {
  return JSON.stringify(text.length <= 80 ? text : `${text.slice(0, 80)}…`);
}
