/** What a check of requests says. */
import type { Check } from "../../../actors/runtime/checks.ts";
import { LeatError } from "../../../core/error.ts";

/** Why the check refuses the request; undefined if it does not. */
export function refusalOf(check: Check, request: unknown): LeatError | undefined {
  try {
    check(request);
    return undefined;
  } catch (error) {
    if (error instanceof LeatError) return error;
    throw error;
  }
}
