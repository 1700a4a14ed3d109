/**
 * What stands where a confined thread has nothing.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";

/** A function, or class, that says that it is shut off. */
export function shutOff(name: string): () => never {
  return function () {
    throw new LeatError(
      "permission_denied",
      `${name} is shut off for user functions, whatever a worker grants`,
    );
  };
}
