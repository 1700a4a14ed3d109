/**
 * The list of workers that a dispatcher is set up with: they share the jobs of static policies.
 *
 * @module
 */
import { LeatError } from "../../../core/error.ts";

/** Workers that a sentence names; of the others it says how many there are. */
const NAMED_MAX = 8;

/**
 * The list of workers that a dispatcher is set up with.
 *
 * @throws {LeatError} `invalid_argument` for a name that is empty or there twice.
 */
export function checkWorkerNames(names: readonly string[]): readonly string[] {
  const before = new Set<string>();
  const wrong = names.find((name) => name === "" || before.size === before.add(name).size);
  if (wrong === undefined) return names;
  throw new LeatError(
    "invalid_argument",
    `workers must be the names of the workers, each once, got "${wrong}" in ${names.join(", ")}`,
  );
}

/** Some of the names, and how many more there are. */
export function named(workers: readonly string[]): string {
  const more = workers.length - NAMED_MAX;
  return workers.slice(0, NAMED_MAX).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
