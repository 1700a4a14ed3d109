/**
 * How to let a user's module do what Deno has denied it.
 *
 * @module
 */
import { LeatError } from "../../mod.ts";

/** As Deno names the flag that was missing. */
const FLAG = /--allow-[a-z]+/;

/** The error, with the command that grants what was denied if that is what lies behind it. */
export function withGrantHint(error: LeatError): LeatError {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    const isDenied = cause instanceof Deno.errors.NotCapable ||
      (cause instanceof LeatError && cause.code === "permission_denied");
    const [flag] = isDenied ? FLAG.exec(cause.message) ?? [] : [];
    if (flag === undefined) continue;
    return new LeatError(
      "permission_denied",
      `${error.message}. Grant it with: deno run --no-prompt -P=plan ${flag} cli/plan.ts …`,
      { cause: error.cause },
    );
  }
  return error;
}
