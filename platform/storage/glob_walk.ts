/**
 * Lists local files by glob pattern. Libraries (`node:fs` `glob`, `tinyglobby`) read environment
 * variables, for which a program that only reads data should need no permission.
 */

import { setImmediate } from "node:timers/promises";
import { LeatError } from "../../core/error.ts";
import { GlobPositions, type GlobSegment, parseGlobs } from "./glob.ts";

/** Limit of the files that one pattern lists. A longer list would fill memory. */
export const LISTED_FILES_MAX = 4_000_000;

/** The walk yields to the event loop after about this number of comparisons of names and patterns. */
const MATCHES_AT_ONCE = 10_000;

/**
 * Lists the regular files that match `pattern`, sorted by code units. Paths begin as the pattern does:
 * absolute or relative to the current folder. Links to files and folders are followed, but `**`
 * enters no linked folder, because that might form a cycle: it only begins in one.
 *
 * Throws Deno's error if a folder cannot be read; a missing folder has no files. Throws the reason of
 * `signal` once it is aborted.
 */
export async function listGlob(pattern: string, signal?: AbortSignal): Promise<string[]> {
  const found = new Set<string>();
  const folders = new Map<string, { start: string; patterns: (readonly GlobSegment[])[] }>();
  for (const { start, folder, segments } of parseGlobs(pattern, "paths")) {
    if (segments === undefined) {
      if (await isFile(start)) found.add(start);
    } else {
      folders.getOrInsert(folder, { start, patterns: [] }).patterns.push(segments);
    }
  }
  for (const [folder, { start, patterns }] of folders) {
    await walk(start, folder, GlobPositions.start(patterns), found, signal);
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
  positions: GlobPositions,
  found: Set<string>,
  signal: AbortSignal | undefined,
): Promise<void> {
  signal?.throwIfAborted();
  let matched = 0;
  for (const entry of await entriesOf(folder === "" ? "." : folder)) {
    const path = prefix + entry.name;
    matched += positions.count;
    if (matched > MATCHES_AT_ONCE) {
      matched = 0;
      await setImmediate();
      signal?.throwIfAborted();
    }
    const entered = positions.enter(entry.name);
    const { matches } = entered;
    const below = entry.isSymlink ? entered.below.belowLink : entered.below;
    // This comes before a link is followed, because this program may not inspect every target.
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
    const isMissing = error instanceof Deno.errors.NotFound ||
      error instanceof Deno.errors.NotADirectory ||
      error instanceof Deno.errors.FilesystemLoop;
    if (isMissing) return undefined;
    throw error;
  }
}
