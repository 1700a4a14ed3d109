/**
 * Glob patterns. Libraries compile them to regular expressions that backtrack, so that a pattern of
 * twenty `?*` never ends on a long name. Here a match takes at most name length × pattern length steps.
 */

import { LeatError } from "../../core/error.ts";
import { expandBraces } from "./glob_braces.ts";
import { type CharacterSet, isMember, parseSet } from "./glob_set.ts";

/** Limit of the characters of one pattern. */
const GLOB_LENGTH_MAX = 16_384;

/** Matches any run of characters within one name. */
const STAR = Symbol("*");
/** Matches one character. */
const ANY = Symbol("?");

type Token = string | typeof STAR | typeof ANY | CharacterSet;

/** The pattern of one level of a path: one name, or any number of names for `**`. */
export type GlobSegment = GlobName | "**";

/** A pattern without braces, cut before the first segment with a wildcard. */
export interface Glob {
  /** The segments before the wildcard: the folder to list. Without a wildcard, the whole path. */
  readonly start: string;
  /** What the paths of its files begin with: `start` and a slash. Empty for the current folder. */
  readonly folder: string;
  /** The patterns of names below `folder`, level by level; `undefined` without a wildcard. */
  readonly segments: readonly GlobSegment[] | undefined;
}

/**
 * Parses a pattern: `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}`, `**` for any depth, and `\` before a
 * literal character. Braces expand to several patterns, as in a shell.
 * @param names What the patterns match: paths, in which `a//b` and `a/./b` are `a/b`, or the keys of
 * a store, which are three.
 * @throws {LeatError} `invalid_argument` for a pattern longer than {@linkcode GLOB_LENGTH_MAX}, for
 * braces that expand to too many patterns, and for a range in braces.
 */
export function parseGlobs(pattern: string, names: "paths" | "keys"): Glob[] {
  if (pattern.length > GLOB_LENGTH_MAX) {
    throw new LeatError(
      "invalid_argument",
      `A pattern has ${pattern.length} characters, and ${GLOB_LENGTH_MAX} is the most (GLOB_LENGTH_MAX): ` +
        `${pattern.slice(0, 60)}…; list several patterns.`,
    );
  }
  return [...new Set(expandBraces(pattern))].map((one) => parseExpanded(one, names));
}

/** The pattern of one name: the part of a path's pattern between two slashes, except `**`. */
export class GlobName {
  readonly #tokens: readonly Token[];
  readonly #lengthMin: number;
  /** Whether the pattern begins with a dot. Only such a pattern matches names that begin with a dot. */
  readonly #beginsWithDot: boolean;

  constructor(segment: string) {
    this.#tokens = parseTokens([...segment]);
    this.#lengthMin = this.#tokens.filter((token) => token !== STAR).length;
    this.#beginsWithDot = this.#tokens[0] === ".";
  }

  /** The literal name if the pattern has no wildcard. */
  get literal(): string | undefined {
    return this.#tokens.every((token) => typeof token === "string")
      ? this.#tokens.join("")
      : undefined;
  }

  /** The characters that every matching name begins with. */
  get literalPrefix(): string {
    const wildcard = this.#tokens.findIndex((token) => typeof token !== "string");
    return this.#tokens.slice(0, wildcard < 0 ? undefined : wildcard).join("");
  }

  /** @param name its characters, one Unicode code point each. */
  matches(name: ArrayLike<string>): boolean {
    if (name.length < this.#lengthMin || (name[0] === "." && !this.#beginsWithDot)) return false;
    const tokens = this.#tokens;
    let token = 0, at = 0;
    // On a mismatch only the last star consumes one more character: earlier stars need no backtracking.
    let star = -1, starAt = 0;
    while (at < name.length) {
      const expected = tokens[token];
      if (expected === STAR) {
        star = token++;
        starAt = at;
      } else if (expected !== undefined && matchesOne(expected, name[at]!)) {
        token++;
        at++;
      } else if (star >= 0) {
        token = star + 1;
        at = ++starAt;
      } else return false;
    }
    while (tokens[token] === STAR) token++;
    return token === tokens.length;
  }
}

/** A position in a pattern: the rest of the pattern, which a path must match from some level on. */
interface GlobPosition {
  readonly segment: GlobSegment;
  /** `undefined` after the last segment. */
  readonly next: GlobPosition | undefined;
}

/**
 * The positions that a path has reached in several patterns. With them a walk enters each folder once
 * for all patterns.
 */
export class GlobPositions {
  /** Each with whether the path has reached it by a name of the pattern, not only within its `**`. */
  readonly #positions: ReadonlyMap<GlobPosition, boolean>;

  private constructor(positions: ReadonlyMap<GlobPosition, boolean>) {
    this.#positions = positions;
  }

  static start(patterns: Iterable<readonly GlobSegment[]>): GlobPositions {
    const positions = new Map<GlobPosition, boolean>();
    for (const segments of patterns) {
      let next: GlobPosition | undefined;
      for (const segment of segments.toReversed()) next = { segment, next };
      if (next !== undefined) positions.set(next, true);
    }
    return new GlobPositions(positions);
  }

  /** The number of positions. Each name is matched against all of them. 0 if nothing can match. */
  get count(): number {
    return this.#positions.size;
  }

  /** Returns whether the file `name` at this level matches, and the positions below a folder `name`. */
  enter(name: string): { matches: boolean; below: GlobPositions } {
    const letters = [...name];
    const below = new Map<GlobPosition, boolean>();
    let matches = false;
    for (let position of this.#positions.keys()) {
      if (position.segment === "**") {
        // `**` either consumes this name and stays, or matches nothing, and the next segment is tried.
        if (letters[0] !== ".") {
          below.set(position, below.get(position) ?? false);
          matches ||= position.next === undefined;
        }
        if (position.next === undefined) continue;
        position = position.next;
      }
      if (!(position.segment as GlobName).matches(letters)) continue;
      if (position.next === undefined) matches = true;
      else below.set(position.next, true);
    }
    return { matches, below: new GlobPositions(below) };
  }

  /**
   * The positions below a linked folder: those that a name has reached. A cycle of links ends, because
   * each link takes a name of the pattern; `**`, which takes none, enters no link.
   */
  get belowLink(): GlobPositions {
    return new GlobPositions(new Map([...this.#positions].filter(([, isByName]) => isByName)));
  }
}

function parseExpanded(pattern: string, of: "paths" | "keys"): Glob {
  const parts = pattern.split("/");
  const names = parts.map((part): GlobSegment => part === "**" ? part : new GlobName(part));
  const wildcard = names.findIndex((name) => name === "**" || name.literal === undefined);
  const literals = names.slice(0, wildcard < 0 ? undefined : wildcard)
    .map((name) => (name as GlobName).literal!);
  const start = literals.join("/") || (wildcard > 0 ? "/" : "");
  // Every slash counts: names begin as the pattern does, and "a//b" is another key than "a/b".
  const folder = literals.map((name) => `${name}/`).join("");
  if (wildcard < 0) return { start, folder, segments: undefined };
  const isFolders = parts.at(-1) === "";
  const segments: GlobSegment[] = [];
  for (const [i, name] of names.slice(wildcard).entries()) {
    const isSame = of === "paths" && ["", "."].includes(parts[wildcard + i]!);
    // Several consecutive `**` mean the same as one.
    if (!isSame && !(name === "**" && segments.at(-1) === "**")) segments.push(name);
  }
  // A pattern that ends with a slash means a folder, so no file matches.
  return { start, folder, segments: isFolders ? [] : segments };
}

function parseTokens(letters: readonly string[]): Token[] {
  const tokens: Token[] = [];
  let isUnclosed = false;
  for (let at = 0; at < letters.length; at++) {
    const letter = letters[at]!;
    if (letter === "*") {
      if (tokens.at(-1) !== STAR) tokens.push(STAR);
    } else if (letter === "?") tokens.push(ANY);
    else if (letter === "\\" && at + 1 < letters.length) tokens.push(letters[++at]!);
    else if (letter === "[" && !isUnclosed) {
      const set = parseSet(letters, at);
      isUnclosed = set === undefined;
      tokens.push(set?.set ?? letter);
      at = set?.end ?? at;
    } else tokens.push(letter);
  }
  return tokens;
}

function matchesOne(token: Token, letter: string): boolean {
  if (typeof token === "string") return token === letter;
  return typeof token === "symbol" || isMember(token, letter);
}
