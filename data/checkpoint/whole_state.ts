/** Reads states that other versions saved with fewer fields. */
import { LeatError } from "../../core/error.ts";
import { isPlainObject } from "../../core/tree.ts";

/**
 * A saved state whose missing fields cannot be read: reading a field that was added since fails and
 * names it, because `undefined` in its place would give another stream. Operators test optional
 * fields with `in`. A state within it, which may also be an element, is wrapped separately.
 *
 * Errors: `failed_precondition`, when a missing field is read.
 */
export function wholeState<T>(state: T): T {
  if (!isPlainObject(state)) return state;
  return new Proxy(state, {
    get(fields, name) {
      if (typeof name === "symbol" || name in fields) return Reflect.get(fields, name);
      throw new LeatError(
        "failed_precondition",
        `This iterator was saved by another version of Leat, which did not write "${name}". ` +
          "Read on with that version, or restart the epoch.",
      );
    },
  });
}
