/** Protects against states that another version, or another kind of iterator, saved. */
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
      throw "remote" in fields ? savedElsewhere() : new LeatError(
        "failed_precondition",
        `This iterator was saved by another version of Leat, which did not write "${name}". ` +
          "Continue with that version, or restart the epoch.",
      );
    },
  });
}

/** The error for a state that only another process can read: see `RemoteIterator`. */
function savedElsewhere(): LeatError {
  return new LeatError(
    "failed_precondition",
    "restore: the program that saved this iterator did not trust the author of the pipeline, and " +
      "this program does. Restore it without trustPipeline, or restart the epoch",
  );
}
