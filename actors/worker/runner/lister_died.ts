/** The death of a runner while it lists splits. */
import { LeatError } from "../../../core/error.ts";
import { LISTER_DIED } from "../../dispatcher/protocol.ts";

/**
 * Returns the error of a listing whose runner died of `error`. Its code is `aborted`, because a request
 * that fails with the code of many deaths (`unavailable`, `resource_exhausted`) would be repeated.
 */
export function listerDied(error: unknown): LeatError {
  const { message } = LeatError.from(error);
  return new LeatError("aborted", message, { details: { reason: LISTER_DIED } });
}
