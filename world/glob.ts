/**
 * Listing files by glob pattern. `picomatch` decides what matches; the walk is here because the libraries that walk (`node:fs`
 * `glob`, `tinyglobby`) read environment variables, for which a program that only reads data should not need permission.
 */

// @ts-types="@types/picomatch"
import picomatch from "picomatch";
import { LeatError } from "../core/error.ts";

/** Most files one pattern may list; beyond it the listing itself would fill memory. */
export const LISTED_FILES_MAX = 4_000_000;

/**
 * The regular files matching `pattern`, sorted by code units. Paths begin as the pattern does: absolute or relative to the current
 * folder. Links to files and folders are followed, but `**` enters no linked folder, which might lead back.
 *
 * Throws what Deno throws where a folder cannot be read; a folder that is not there has no files.
 */
export async function listGlob(pattern: string): Promise<string[]> {
  const { start, folder, glob } = parseGlob(pattern);
  if (glob === "") return await isFile(start) ? [start] : [];
  const walk = new GlobWalk(glob);
  await walk.enter(start, folder, []);
  return walk.found.sort();
}

/** A pattern, cut where its first wildcard begins to matter. */
export interface Glob {
  /** What comes before: the folder that is listed, or the whole name where there is no wildcard. */
  readonly start: string;
  /** The same as the beginning of a path: it ends with a slash, unless it is empty. */
  readonly folder: string;
  /** What paths match from there on, as `picomatch` reads it; empty where there is no wildcard. */
  readonly glob: string;
}

/** Takes a pattern apart. */
export function parseGlob(pattern: string): Glob {
  // Escaped braces hide the wildcards between them from `scan`, though not from `picomatch` itself.
  const { prefix, base, glob } = picomatch.scan(pattern.replace(/\\[{}]/g, "\\_"));
  const start = unescape(pattern.slice(0, prefix.length + base.length));
  const folder = start === "" || start.endsWith("/") ? start : `${start}/`;
  return { start, folder, glob: glob === "" ? "" : pattern.slice(-glob.length) };
}

/** The error of a listing that outgrows {@linkcode LISTED_FILES_MAX}. */
export function tooManyFiles(): LeatError {
  return new LeatError(
    "resource_exhausted",
    `A pattern matches more than ${LISTED_FILES_MAX} files (LISTED_FILES_MAX); list parts of them.`,
  );
}

class GlobWalk {
  readonly found: string[] = [];
  readonly #matches: (path: string) => boolean;
  /** One matcher per folder level, as far as the pattern decides on folders one by one. */
  readonly #levels: ((name: string) => boolean)[];
  readonly #depthMax: number;
  readonly #globstarDepth: number;

  constructor(glob: string) {
    this.#matches = picomatch(glob);
    const segments = glob.split("/");
    const globstar = segments.findIndex((segment) => segment.includes("**"));
    this.#depthMax = globstar < 0 ? segments.length - 1 : Infinity;
    this.#globstarDepth = globstar < 0 ? Infinity : globstar;
    // Inside braces and brackets a slash divides no levels; then every folder is looked into.
    const splits = segments.every((segment) => isBalanced(segment));
    const decided = splits ? segments.slice(0, globstar < 0 ? -1 : globstar) : [];
    this.#levels = decided.map((segment) => picomatch(segment));
  }

  /** @param names the folder's path below the base, one name per level. */
  async enter(folder: string, prefix: string, names: readonly string[]): Promise<void> {
    for (const entry of await entriesOf(folder === "" ? "." : folder)) {
      const path = prefix + entry.name;
      const below = [...names, entry.name];
      const matches = this.#matches(below.join("/"));
      const leadsOn = this.#leadsOn(below, entry.isSymlink);
      // Before a link is followed: where it leads may be nobody's business.
      if (!matches && !leadsOn) continue;
      const kind = entry.isSymlink ? await statOrNothing(path) : entry;
      if (kind?.isFile && matches) this.#add(path);
      else if (kind?.isDirectory && leadsOn) await this.enter(path, `${path}/`, below);
    }
  }

  #leadsOn(below: readonly string[], isLink: boolean): boolean {
    const level = below.length - 1;
    if (level >= this.#depthMax || (isLink && level >= this.#globstarDepth)) return false;
    const decides = this.#levels[level];
    return decides === undefined ? !below[level]!.startsWith(".") : decides(below[level]!);
  }

  #add(path: string): void {
    if (this.found.length >= LISTED_FILES_MAX) throw tooManyFiles();
    this.found.push(path);
  }
}

async function entriesOf(folder: string): Promise<Deno.DirEntry[]> {
  try {
    return await Array.fromAsync(Deno.readDir(folder));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) {
      return [];
    }
    throw error;
  }
}

async function isFile(path: string): Promise<boolean> {
  return (await statOrNothing(path))?.isFile ?? false;
}

/** `undefined` for what is not there, a link that leads nowhere or in a circle included. */
async function statOrNothing(path: string): Promise<Deno.FileInfo | undefined> {
  try {
    return await Deno.stat(path);
  } catch (error) {
    const gone = error instanceof Deno.errors.NotFound ||
      error instanceof Deno.errors.NotADirectory ||
      error instanceof Deno.errors.FilesystemLoop;
    if (gone) return undefined;
    throw error;
  }
}

/** Whether every bracket that opens in `segment` closes there. Escaped ones are letters like others. */
function isBalanced(segment: string): boolean {
  const brackets = segment.replace(/\\./g, "");
  const count = (bracket: RegExp) => brackets.match(bracket)?.length ?? 0;
  return count(/[{([]/g) === count(/[})\]]/g);
}

/** The name that a pattern without wildcards stands for. */
export function unescape(literal: string): string {
  return literal.replace(/\\(.)/g, "$1");
}
