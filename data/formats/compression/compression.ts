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

/** Returns how the file at `path` is compressed; `undefined` if it is not. */
export function compressionOf(
  path: string,
  compression: FileCompression | undefined,
): Compression | undefined {
  if (compression !== "auto") return compression;
  const name = path.toLowerCase();
  return COMPRESSION_OF_SUFFIX.find(([suffix]) => name.endsWith(suffix))?.[1];
}

/** A sentence for errors of a file that is read as it is, if its name says that it is compressed. */
export function compressionRemedy(path: string): string {
  const found = compressionOf(path, "auto");
  if (found === undefined) return "";
  return ` Its name is that of a ${found} file: set the option compression to "${found}" or "auto".`;
}
