/**
 * Whether a pipeline gives the same elements in every run, as far as the source of its functions
 * shows.
 */
import { LeatError } from "../../core/error.ts";
import { NodeFunction } from "../udf/call.ts";
import type { DatasetNode } from "../node.ts";
import { ambientNamesOf, functionText } from "../udf/user_function.ts";

/** Ambient names of random sources. */
const ENTROPY: ReadonlySet<string> = new Set(["Math.random", "crypto"]);
/** Ambient names of clocks. */
const CLOCKS: ReadonlySet<string> = new Set(["Date", "Temporal", "performance"]);

/** How the message begins by default. */
const EVERY_RUN = "distribute: under DETERMINISTIC every run gives the same elements";

/**
 * Refuses functions that use the clock or ambient random numbers. Functions in modules are not
 * examined.
 *
 * Errors: `failed_precondition`, naming the operator, what its function uses, and what to use
 * instead.
 *
 * @param why How the message begins: why the stream has to be reproducible.
 */
export function checkReproducible(root: DatasetNode, why = EVERY_RUN): void {
  for (const value of Object.values(root.attributes)) {
    if (!(value instanceof NodeFunction)) continue;
    const names = ambientNamesOf(value);
    if (names.length > 0) throw refused(why, root.kind, names, functionText(value.fn));
  }
  for (const input of root.inputs) checkReproducible(input, why);
}

function refused(why: string, operator: string, names: readonly string[], text: string): LeatError {
  const remedies = [
    ...(names.some((name) => !CLOCKS.has(name))
      ? ["draw random numbers from `random` of the last argument: (x, { random }) => random.next()"]
      : []),
    ...(names.some((name) => !ENTROPY.has(name))
      ? ["read the clock where the pipeline is made, and hand the time over in captures"]
      : []),
  ];
  return new LeatError(
    "failed_precondition",
    `${why}, but the function of ${operator} uses ${names.join(", ")}, which differs from run to ` +
      `run. ${sentence(remedies.join("; "))}. The function: ${text}`,
    { details: { operator, ambientNames: [...names] } },
  );
}

function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
