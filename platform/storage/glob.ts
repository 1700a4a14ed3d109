/**
 * Glob patterns. Libraries compile them to regular expressions that backtrack: matching `?*` twenty
 * times never ends on a long name. Here a match takes at most name length × pattern length steps.
 */

import { LeatError } from "../../core/error.ts";
import { expandBraces } from "./glob_braces.ts";
import { type CharacterSet, isMember, parseSet } from "./glob_set.ts";

/** Most characters of one pattern. */
const GLOB_LENGTH_MAX = 16_384;

/** Matches any run of characters within one name. */
const STAR = Symbol("*");
/** Matches one character. */
const ANY = Symbol("?");

type Token = string | typeof STAR | typeof ANY | CharacterSet;

/** The pattern of one level of a path: one name, or any number of names for `**`. */
export type GlobSegment = GlobName | "**";

/** One pattern without braces, cut at its first wildcard. */
export interface Glob {
  /** The part before the wildcard: the folder to list; without a wildcard, the whole name. */
  readonly start: string;
  /** `start` as the beginning of a path: it ends with a slash, unless it is empty. */
  readonly folder: string;
  /** The patterns of names below `folder`, level by level; `undefined` without a wildcard. */
  readonly segments: readonly GlobSegment[] | undefined;
}

/**
 * Parses a pattern: `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}`, `**` for any depth, and `\` before a
 * literal character. Braces expand to several patterns, as in a shell.
 * @throws {LeatError} `invalid_argument` beyond {@linkcode GLOB_LENGTH_MAX}, for braces that expand
 * to too many patterns, and for a range in braces.
 */
export function parseGlobs(pattern: string): Glob[] {
  if (pattern.length > GLOB_LENGTH_MAX) {
    throw new LeatError(
      "invalid_argument",
      `A pattern has ${pattern.length} characters, and ${GLOB_LENGTH_MAX} is the most (GLOB_LENGTH_MAX): ` +
        `${pattern.slice(0, 60)}…; list several patterns.`,
    );
  }
  return [...new Set(expandBraces(pattern))].map(parseExpanded);
}

/** The pattern of one name: the part of a path's pattern between two slashes, except `**`. */
export class GlobName {
  readonly #tokens: readonly Token[];
  readonly #lengthMin: number;
  /** A name that begins with a dot matches only a pattern that does. */
  readonly #takesDot: boolean;

  constructor(segment: string) {
    this.#tokens = parseTokens([...segment]);
    this.#lengthMin = this.#tokens.filter((token) => token !== STAR).length;
    this.#takesDot = this.#tokens[0] === ".";
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
    if (name.length < this.#lengthMin || (name[0] === "." && !this.#takesDot)) return false;
    const tokens = this.#tokens;
    let token = 0, at = 0;
    // On a mismatch only the last star takes one more character: earlier stars need no backtracking.
    let star = -1, starAt = 0;
    while (at < name.length) {
      const wanted = tokens[token];
      if (wanted === STAR) {
        star = token++;
        starAt = at;
      } else if (wanted !== undefined && matchesOne(wanted, name[at]!)) {
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

/** The rest of a pattern that a path must match from some level on. */
interface GlobPlace {
  readonly segment: GlobSegment;
  /** `undefined` after the last segment. */
  readonly next: GlobPlace | undefined;
}

/**
 * How far a path has matched several patterns. With it the walk enters each folder once, for all
 * patterns together.
 */
export class GlobPlaces {
  readonly #places: ReadonlySet<GlobPlace>;

  private constructor(places: ReadonlySet<GlobPlace>) {
    this.#places = places;
  }

  static begin(patterns: Iterable<readonly GlobSegment[]>): GlobPlaces {
    const places = new Set<GlobPlace>();
    for (const segments of patterns) {
      let next: GlobPlace | undefined;
      for (const segment of segments.toReversed()) next = { segment, next };
      if (next !== undefined) places.add(next);
    }
    return new GlobPlaces(places);
  }

  /** The number of positions; each name is matched against each. 0 if nothing can match. */
  get count(): number {
    return this.#places.size;
  }

  /** Whether the file `name` at this level matches, and the positions below it if it is a folder. */
  enter(name: string): { matches: boolean; below: GlobPlaces } {
    const letters = [...name];
    const below = new Set<GlobPlace>();
    let matches = false;
    for (let place of this.#places) {
      if (place.segment === "**") {
        // `**` consumes this name and stays, or matches nothing and the next segment is tried.
        if (letters[0] !== ".") {
          below.add(place);
          matches ||= place.next === undefined;
        }
        if (place.next === undefined) continue;
        place = place.next;
      }
      if (!(place.segment as GlobName).matches(letters)) continue;
      if (place.next === undefined) matches = true;
      else below.add(place.next);
    }
    return { matches, below: new GlobPlaces(below) };
  }

  /** The positions without `**`, which enters no linked folder. */
  get belowLink(): GlobPlaces {
    return new GlobPlaces(new Set([...this.#places].filter(({ segment }) => segment !== "**")));
  }
}

function parseExpanded(pattern: string): Glob {
  const parts = pattern.split("/");
  const names = parts.map((part): GlobSegment => part === "**" ? part : new GlobName(part));
  const wildcard = names.findIndex((name) => name === "**" || name.literal === undefined);
  const literals = names.slice(0, wildcard < 0 ? undefined : wildcard)
    .map((name) => (name as GlobName).literal!);
  const start = literals.join("/") || (wildcard > 0 ? "/" : "");
  const folder = start === "" || start.endsWith("/") ? start : `${start}/`;
  if (wildcard < 0) return { start, folder, segments: undefined };
  const isFolders = parts.at(-1) === "";
  const segments: GlobSegment[] = [];
  for (const [i, name] of names.slice(wildcard).entries()) {
    const isEmpty = ["", "."].includes(parts[wildcard + i]!);
    // Several consecutive `**` mean the same as one.
    if (!isEmpty && !(name === "**" && segments.at(-1) === "**")) segments.push(name);
  }
  // A pattern that ends with a slash means a folder, so no file matches.
  return { start, folder, segments: isFolders ? [] : segments };
}

function parseTokens(letters: readonly string[]): Token[] {
  const tokens: Token[] = [];
  let closesNone = false;
  for (let at = 0; at < letters.length; at++) {
    const letter = letters[at]!;
    if (letter === "*") {
      if (tokens.at(-1) !== STAR) tokens.push(STAR);
    } else if (letter === "?") tokens.push(ANY);
    else if (letter === "\\" && at + 1 < letters.length) tokens.push(letters[++at]!);
    else if (letter === "[" && !closesNone) {
      const set = parseSet(letters, at);
      closesNone = set === undefined;
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
