/**
 * What was saved of an iterator by a version that wrote less of it.
 */
import { LeatError } from "../../core/error.ts";
import { isPlainObject } from "../../core/tree.ts";

/**
 * A saved state of which only what is there can be read: a field that was added since is refused by its
 * name, where `undefined` in its place would give another stream. Operators ask by `in` for what may be
 * left out. A state within it, which may be an element as well, is asked for by itself.
 *
 * Errors: `failed_precondition`, when a field is read that is not there.
 */
export function wholeState<T>(state: T): T {
  if (!isPlainObject(state)) return state;
  return new Proxy(state, {
    get(fields, name) {
      if (typeof name === "symbol" || name in fields) return Reflect.get(fields, name);
      throw new LeatError(
        "failed_precondition",
        `This iterator was saved by another version of Leat, which did not write "${name}". ` +
          "Read on with that version, or begin anew.",
      );
    },
  });
}
