/** Options of clients of a service: how elements are compressed, and which workers are read. */

/**
 * - `"auto"`: compress if measurements show a gain: over slow networks, for data that shrinks.
 * - `"none"`: never compress.
 * - `"zstd"`, `"gzip"`: compress every element that becomes smaller.
 */
export type ElementCompression = "auto" | "none" | "zstd" | "gzip";

/** The values of {@linkcode ElementCompression}. */
export const ELEMENT_COMPRESSIONS: readonly ElementCompression[] = ["auto", "none", "zstd", "gzip"];

/**
 * Private workers of other processes are never read (`serveWorker({ local: true })`). Of the others:
 *
 * - `"auto"`: all workers, except those of other processes with the tag `COLOCATED`; with
 *   `numConsumers` also those.
 * - `"any"`: all workers.
 * - `"local"`: only the workers of the client's own process, by direct call. It needs such a worker,
 *   and does not go with `numConsumers`.
 */
export type TargetWorkers = "auto" | "any" | "local";

/** The values of {@linkcode TargetWorkers}. */
export const TARGET_WORKERS: readonly TargetWorkers[] = ["auto", "any", "local"];

/**
 * Workers with this tag serve only clients of their own process, those that ask for `"any"`, and those
 * of jobs with `numConsumers`.
 */
export const LOCAL_ONLY_TAG = "COLOCATED";
