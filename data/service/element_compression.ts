/**
 * How elements are compressed on their way from workers to readers.
 */

/**
 * - `"auto"`: where it is measured to pay: over slow networks, for data that gets smaller.
 * - `"none"`: never.
 * - `"zstd"`, `"gzip"`: every element that gets smaller by it.
 */
export type ElementCompression = "auto" | "none" | "zstd" | "gzip";

/** The values of {@linkcode ElementCompression}. */
export const ELEMENT_COMPRESSIONS: readonly ElementCompression[] = ["auto", "none", "zstd", "gzip"];
