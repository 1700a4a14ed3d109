/** Determines how files are compressed. */

export type Compression = "gzip" | "zlib" | "zstd";

/** How files are compressed: all in one way, or, with `"auto"`, each as its name says. */
export type FileCompression = Compression | "auto";

export const COMPRESSIONS: readonly Compression[] = ["gzip", "zlib", "zstd"];

const COMPRESSION_OF_SUFFIX: readonly (readonly [suffix: string, Compression])[] = [
  [".gz", "gzip"],
  [".gzip", "gzip"],
  [".tgz", "gzip"],
  [".zst", "zstd"],
  [".zstd", "zstd"],
  [".zz", "zlib"],
];

/** The first bytes of a compressed file. Those of zlib are too few to tell it from other files. */
const COMPRESSION_OF_SIGNATURE: readonly (readonly [readonly number[], Compression])[] = [
  [[0x1f, 0x8b, 8], "gzip"],
  [[0x28, 0xb5, 0x2f, 0xfd], "zstd"],
];

export const SIGNATURE_BYTES_MAX = 4;

/** A URL of the web up to its query, and its query. */
const WEB_URL = /^(https?:[^?#]*)(\?[^#]*)?/is;

/** Returns how the file at `path` is compressed; `undefined` if it is not. */
export function compressionOf(
  path: string,
  compression: FileCompression | undefined,
): Compression | undefined {
  if (compression !== "auto") return compression;
  const name = fileName(path).toLowerCase();
  return COMPRESSION_OF_SUFFIX.find(([suffix]) => name.endsWith(suffix))?.[1];
}

/** What says how a file is compressed: its path, or the query of a URL whose path ends without a "." */
function fileName(path: string): string {
  const [, name = path, query = ""] = WEB_URL.exec(path) ?? [];
  const hasEnding = name.slice(name.lastIndexOf("/")).includes(".");
  return hasEnding ? name : name + query;
}

/**
 * A sentence for errors of a file that is read as it is, if its name or its first bytes say that it is
 * compressed; otherwise `""`.
 */
export function compressionRemedy(path: string, firstBytes: Uint8Array): string {
  const named = compressionOf(path, "auto");
  if (named !== undefined) {
    return ` Its name is that of a ${named} file: set the option compression to "${named}" or "auto".`;
  }
  const found = COMPRESSION_OF_SIGNATURE.find(([signature]) =>
    signature.every((byte, i) => firstBytes[i] === byte)
  );
  if (found === undefined) return "";
  const [, compression] = found;
  return ` It begins as a ${compression} file does: set the option compression to "${compression}".`;
}
