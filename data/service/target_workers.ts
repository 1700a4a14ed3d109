/**
 * Which of a service's workers a client reads.
 */

/**
 * - `"auto"`: all but the workers of other processes that carry {@linkcode LOCAL_ONLY_TAG}.
 * - `"any"`: all that can be reached.
 * - `"local"`: the workers of the client's own process alone, by direct call.
 */
export type TargetWorkers = "auto" | "any" | "local";

/** The values of {@linkcode TargetWorkers}. */
export const TARGET_WORKERS: readonly TargetWorkers[] = ["auto", "any", "local"];

/** Workers with this tag are left to the clients of their own process, unless those ask for `"any"`. */
export const LOCAL_ONLY_TAG = "COLOCATED";
