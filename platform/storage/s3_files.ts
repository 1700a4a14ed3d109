/** Files in S3-compatible stores: `s3://bucket/key`. */

import { LeatError } from "../../core/error.ts";
import { shownPath } from "../../core/shown_text.ts";
import type { Files } from "../../data/host.ts";
import { FarFile } from "./far_file.ts";
import { FarObject } from "./far_object.ts";
import { type Glob, GlobPlaces, parseGlobs } from "./glob.ts";
import { LISTED_FILES_MAX, tooManyFiles } from "./glob_walk.ts";
import type { HttpClient } from "./http_client.ts";
import { listOne } from "./http_files.ts";
import { S3Client } from "./s3_client.ts";
import type { S3Settings } from "./s3_settings.ts";

/**
 * The objects of a store. A key is literal, not percent-encoded.
 *
 * Needs `--allow-net` for the store's host. Opening an object throws `not_found`,
 * `permission_denied` (of the store, or of Deno for its host), `unavailable`.
 *
 * @param scheme of its paths: `"s3"`, or another store's.
 */
export function s3Files(scheme: string, settings: S3Settings, http: HttpClient): Files {
  const store = new S3Client(scheme, settings, http);
  const files: Files = {
    async open(path, signal) {
      const { bucket, key } = parse(scheme, path);
      return await FarFile.open(new FarObject(http, store.source(bucket, key)), signal);
    },
    /** The objects that match a pattern, as for local files, sorted by code units. */
    async list(pattern, signal = new AbortController().signal) {
      const { bucket, key } = parse(scheme, pattern);
      const globs = parseGlobs(key);
      const root = `${scheme}://${bucket}/`;
      const [only] = globs;
      if (globs.length === 1 && only!.segments === undefined) {
        return await listOne(files, root + only!.start, signal);
      }
      const matches = keyMatcher(globs);
      const found: string[] = [];
      for await (const key of keysOf(store, bucket, literalPrefix(globs), signal)) {
        // Stores list folders as keys that end with a slash, and the bucket as an empty key.
        if (key === "" || key.endsWith("/") || !matches(key)) continue;
        if (found.length >= LISTED_FILES_MAX) throw tooManyFiles();
        found.push(root + key);
      }
      return found.sort();
    },
  };
  return files;
}

async function* keysOf(
  store: S3Client,
  bucket: string,
  prefix: string,
  signal: AbortSignal,
): AsyncGenerator<string> {
  let token: string | undefined;
  do {
    const page = await store.list(bucket, prefix, token, signal);
    yield* page.keys;
    token = page.next;
  } while (token !== undefined);
}

function parse(scheme: string, path: string): { bucket: string; key: string } {
  const [, bucket, key] = /^[a-z0-9]+:\/\/([A-Za-z0-9._-]+)\/(.+)$/s.exec(path) ?? [];
  if (bucket !== undefined && key !== undefined) return { bucket, key };
  throw new LeatError(
    "invalid_argument",
    `Cannot read ${
      shownPath(path)
    }: a path is ${scheme}://BUCKET/KEY, with a bucket's name of letters, digits, ".", "_" and "-".`,
  );
}

/** Matches keys. It remembers the last folder: keys arrive sorted, and neighbours often share one. */
function keyMatcher(globs: readonly Glob[]): (key: string) => boolean {
  const whole = new Set<string>();
  const begin = new Map<string, GlobPlaces>();
  for (const { start, folder, segments } of globs) {
    if (segments === undefined) whole.add(start);
    else if (!begin.has(folder)) {
      const beside = globs.filter((glob) => glob.folder === folder)
        .flatMap(({ segments }) => segments === undefined ? [] : [segments]);
      begin.set(folder, GlobPlaces.begin(beside));
    }
  }
  const last = new Map<string, { path: string; places: GlobPlaces }>();
  const below = (folder: string, places: GlobPlaces, path: string): GlobPlaces => {
    const known = last.get(folder);
    if (known?.path === path) return known.places;
    for (const name of path.split("/")) places = places.enter(name).below;
    last.set(folder, { path, places });
    return places;
  };
  return (key) => {
    if (whole.has(key)) return true;
    for (const [folder, places] of begin) {
      if (!key.startsWith(folder)) continue;
      const rest = key.slice(folder.length);
      const slash = rest.lastIndexOf("/");
      const here = slash < 0 ? places : below(folder, places, rest.slice(0, slash));
      if (here.enter(rest.slice(slash + 1)).matches) return true;
    }
    return false;
  };
}

/** The common beginning of all keys that can match. */
function literalPrefix(globs: readonly Glob[]): string {
  const prefixes = globs.map(({ start, folder, segments }) => {
    if (segments === undefined) return start;
    const [first] = segments;
    return first === undefined || first === "**" ? folder : folder + first.literalPrefix;
  }).sort();
  // The common prefix of the first and the last in sorted order is common to all.
  const first = prefixes[0]!, last = prefixes.at(-1)!;
  let length = 0;
  while (length < first.length && first[length] === last[length]) length++;
  return first.slice(0, length);
}
