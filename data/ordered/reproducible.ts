/**
 * Whether a pipeline gives the same wherever and whenever it runs, as far as its functions show it.
 */
import { LeatError } from "../../core/error.ts";
import { NodeFunction } from "../call.ts";
import type { DatasetNode } from "../node.ts";
import { ambientNamesOf, functionText } from "../udf/user_function.ts";

/** What of ambient names is luck, … */
const LUCK: ReadonlySet<string> = new Set(["Math.random", "crypto"]);
/** … and what is a clock. */
const CLOCKS: ReadonlySet<string> = new Set(["Date", "Temporal", "performance"]);

/** Why it matters, if nobody says otherwise. */
const EVERY_RUN = "distribute: under DETERMINISTIC every run gives the same elements";

/**
 * Looks for functions that use the clock or luck of their own. Of functions in modules nothing is
 * known.
 *
 * Errors: `failed_precondition`, naming the operator, what its function uses, and what to use instead.
 *
 * @param why it matters: the beginning of the message.
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
      ? ["take luck from `random` of the last argument: (x, { random }) => random.next()"]
      : []),
    ...(names.some((name) => !LUCK.has(name))
      ? ["read the clock where the pipeline is made, and hand the time over in captures"]
      : []),
  ];
  return new LeatError(
    "failed_precondition",
    `${why}, but the function of ` +
      `${operator} uses ${names.join(", ")}, which differs from run to run. ` +
      `${sentence(remedies.join("; "))}. The function: ${text}`,
    { details: { operator, ambientNames: [...names] } },
  );
}

function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
