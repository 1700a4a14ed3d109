/** Files in S3-compatible stores: `s3://bucket/key`. */

import { LeatError } from "../../core/error.ts";
import { shownPath } from "../../core/shown_text.ts";
import type { Files } from "../../data/host.ts";
import { FarFile } from "./far_file.ts";
import { FarObject } from "./far_object.ts";
import { type Glob, GlobPositions, parseGlobs } from "./glob.ts";
import { LISTED_FILES_MAX, tooManyFiles } from "./glob_walk.ts";
import type { HttpClient } from "./http_client.ts";
import { listOne } from "./http_files.ts";
import { S3Client } from "./s3_client.ts";
import type { S3Settings } from "./s3_settings.ts";

/**
 * The objects of a store as files. Keys are literal, not percent-encoded.
 *
 * Needs `--allow-net` for the store's host. Opening an object throws `not_found`,
 * `permission_denied` (by the store, or by Deno for the store's host), `unavailable`.
 *
 * @param scheme The scheme of the paths, such as `"s3"` or `"gs"`.
 */
export function s3Files(scheme: string, settings: S3Settings, http: HttpClient): Files {
  const store = new S3Client(scheme, settings, http);
  const files: Files = {
    async open(path, signal, firstBytes) {
      const { bucket, key } = parse(scheme, path);
      return await FarFile.open(new FarObject(http, store.source(bucket, key)), signal, firstBytes);
    },
    /** The objects that match a pattern, as for local files, sorted by code units. */
    async list(pattern, signal = new AbortController().signal) {
      const { bucket, key } = parse(scheme, pattern);
      const globs = parseGlobs(key, "keys");
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
  // In a URL, "." and ".." would be folders, and the key would begin with the bucket.
  const [, bucket, key] = /^[a-z0-9]+:\/\/(?!\.\.?\/)([A-Za-z0-9._-]+)\/(.+)$/s.exec(path) ?? [];
  if (bucket !== undefined && key !== undefined) return { bucket, key };
  throw new LeatError(
    "invalid_argument",
    `Cannot read ${
      shownPath(path)
    }: a path is ${scheme}://BUCKET/KEY, with a bucket's name of letters, digits, ".", "_" and "-", but not "." or "..".`,
  );
}

/** Matches keys. Caches the last folder's result: keys arrive sorted, and neighbours often share one. */
function keyMatcher(globs: readonly Glob[]): (key: string) => boolean {
  const literals = new Set<string>();
  const roots = new Map<string, GlobPositions>();
  for (const { start, folder, segments } of globs) {
    if (segments === undefined) literals.add(start);
    else if (!roots.has(folder)) {
      const patterns = globs.filter((glob) => glob.folder === folder)
        .flatMap(({ segments }) => segments === undefined ? [] : [segments]);
      roots.set(folder, GlobPositions.start(patterns));
    }
  }
  const last = new Map<string, { path: string; positions: GlobPositions }>();
  const below = (folder: string, root: GlobPositions, path: string): GlobPositions => {
    const cached = last.get(folder);
    if (cached?.path === path) return cached.positions;
    let positions = root;
    for (const name of path.split("/")) positions = positions.enter(name).below;
    last.set(folder, { path, positions });
    return positions;
  };
  return (key) => {
    if (literals.has(key)) return true;
    for (const [folder, root] of roots) {
      if (!key.startsWith(folder)) continue;
      const rest = key.slice(folder.length);
      const slash = rest.lastIndexOf("/");
      const positions = slash < 0 ? root : below(folder, root, rest.slice(0, slash));
      if (positions.enter(rest.slice(slash + 1)).matches) return true;
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
  // Two characters may begin with the same half of a surrogate pair, which cannot be sent alone.
  return first.slice(0, length).replace(/\p{Surrogate}.*/su, "");
}
