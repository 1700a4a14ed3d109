/** How elements are compressed between workers and readers. */

/**
 * - `"auto"`: where it measurably pays: over slow networks, for data that shrinks.
 * - `"none"`: never.
 * - `"zstd"`, `"gzip"`: every element that shrinks by it.
 */
export type ElementCompression = "auto" | "none" | "zstd" | "gzip";

/** The values of {@linkcode ElementCompression}. */
export const ELEMENT_COMPRESSIONS: readonly ElementCompression[] = ["auto", "none", "zstd", "gzip"];
