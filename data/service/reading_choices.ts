/** What a reader of a service chooses: the compression of elements, and the workers it reads. */

/**
 * - `"auto"`: where it measurably pays: over slow networks, for data that shrinks.
 * - `"none"`: never.
 * - `"zstd"`, `"gzip"`: every element that shrinks by it.
 */
export type ElementCompression = "auto" | "none" | "zstd" | "gzip";

/** The values of {@linkcode ElementCompression}. */
export const ELEMENT_COMPRESSIONS: readonly ElementCompression[] = ["auto", "none", "zstd", "gzip"];

/**
 * - `"auto"`: all except workers of other processes with the tag {@linkcode LOCAL_ONLY_TAG}.
 * - `"any"`: all that can be reached.
 * - `"local"`: only the workers of the client's own process, by direct call.
 */
export type TargetWorkers = "auto" | "any" | "local";

/** The values of {@linkcode TargetWorkers}. */
export const TARGET_WORKERS: readonly TargetWorkers[] = ["auto", "any", "local"];

/** Workers with this tag serve only the clients of their own process, unless a client asks for `"any"`. */
export const LOCAL_ONLY_TAG = "COLOCATED";
