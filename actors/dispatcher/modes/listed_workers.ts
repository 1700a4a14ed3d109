/** The dispatcher's configured list of workers, which share the jobs of static policies. */
import { LeatError } from "../../../core/error.ts";
import { shownJson } from "../../../core/shown_text.ts";
import { isWorkerName, WORKER_NAME_FORM } from "../../runtime/checks.ts";

/** A sentence names at most this many workers, and counts the others. */
const NAMED_MAX = 8;

/**
 * Checks the configured list of workers.
 * @throws {LeatError} `invalid_argument` for an empty or repeated name.
 */
export function checkWorkerNames(names: readonly string[]): readonly string[] {
  const before = new Set<string>();
  const wrong = names.find((name) => !isWorkerName(name) || before.size === before.add(name).size);
  if (wrong === undefined) return names;
  throw new LeatError(
    "invalid_argument",
    `workers must be different names, each ${WORKER_NAME_FORM}, got ` +
      `${shownJson(wrong)} in ${shownJson(names)}`,
  );
}

/** Some of the names, and the number of the others. */
export function workersText(workers: readonly string[]): string {
  const more = workers.length - NAMED_MAX;
  return workers.slice(0, NAMED_MAX).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
