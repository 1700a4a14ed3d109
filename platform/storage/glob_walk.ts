/**
 * Lists local files by glob pattern. Libraries (`node:fs` `glob`, `tinyglobby`) read environment
 * variables, for which a program that only reads data should need no permission.
 */

import { setImmediate } from "node:timers/promises";
import { LeatError } from "../../core/error.ts";
import { GlobPlaces, type GlobSegment, parseGlobs } from "./glob.ts";

/** Most files that one pattern may list; a longer list would fill memory. */
export const LISTED_FILES_MAX = 4_000_000;

/** How many comparisons of names with patterns the walk makes before it yields to the event loop. */
const MATCHES_AT_ONCE = 10_000;

/**
 * The regular files matching `pattern`, sorted by code units. Paths begin as the pattern does:
 * absolute or relative to the current folder. Links to files and folders are followed, but `**`
 * enters no linked folder, because that might form a cycle.
 *
 * Throws Deno's error if a folder cannot be read; a missing folder has no files. Aborting `signal`
 * ends it with the signal's reason.
 */
export async function listGlob(pattern: string, signal?: AbortSignal): Promise<string[]> {
  const found = new Set<string>();
  const folders = new Map<string, { start: string; patterns: (readonly GlobSegment[])[] }>();
  for (const { start, folder, segments } of parseGlobs(pattern)) {
    if (segments === undefined) {
      if (await isFile(start)) found.add(start);
    } else {
      folders.getOrInsert(folder, { start, patterns: [] }).patterns.push(segments);
    }
  }
  for (const [folder, { start, patterns }] of folders) {
    await walk(start, folder, GlobPlaces.begin(patterns), found, signal);
  }
  return [...found].sort();
}

/** The error of a listing that exceeds {@linkcode LISTED_FILES_MAX}. */
export function tooManyFiles(): LeatError {
  return new LeatError(
    "resource_exhausted",
    `A pattern matches more than ${LISTED_FILES_MAX} files (LISTED_FILES_MAX); list parts of them.`,
  );
}

/** @param prefix The beginning of the paths of the folder's files. */
async function walk(
  folder: string,
  prefix: string,
  places: GlobPlaces,
  found: Set<string>,
  signal: AbortSignal | undefined,
): Promise<void> {
  signal?.throwIfAborted();
  let matched = 0;
  for (const entry of await entriesOf(folder === "" ? "." : folder)) {
    const path = prefix + entry.name;
    matched += places.count;
    if (matched > MATCHES_AT_ONCE) {
      matched = 0;
      await setImmediate();
      signal?.throwIfAborted();
    }
    const entered = places.enter(entry.name);
    const { matches } = entered;
    const below = entry.isSymlink ? entered.below.belowLink : entered.below;
    // Checked before following a link, whose target may be private.
    if (!matches && below.count === 0) continue;
    const kind = entry.isSymlink ? await statOrNothing(path) : entry;
    if (kind?.isFile && matches) {
      if (found.size >= LISTED_FILES_MAX) throw tooManyFiles();
      found.add(path);
    } else if (kind?.isDirectory && below.count > 0) {
      await walk(path, `${path}/`, below, found, signal);
    }
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

/** `undefined` for a missing file, and for a link that is dangling or circular. */
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
