/** Protects against states that another version saved with fewer fields. */
import { LeatError } from "../../core/error.ts";
import { isPlainObject } from "../../core/tree.ts";

/**
 * A saved state that throws `failed_precondition` if a missing field is read. Otherwise a field that
 * was added since would be `undefined`, and the restored iterator would give other elements. Test
 * optional fields with `in`. States within a state are not wrapped, because they may be elements.
 */
export function wholeState<T>(state: T): T {
  if (!isPlainObject(state)) return state;
  return new Proxy(state, {
    get(fields, name) {
      if (typeof name === "symbol" || name in fields) return Reflect.get(fields, name);
      throw new LeatError(
        "failed_precondition",
        `This iterator was saved by another version of Leat, which did not write "${name}". ` +
          "Continue with that version, or restart the epoch.",
      );
    },
  });
}
