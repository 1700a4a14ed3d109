/** Explains how to grant a permission that a user's module lacked. */
import { causesOf } from "../../core/error.ts";
import { LeatError } from "../../mod.ts";

/** The flag of a missing permission in an error message. */
const FLAG = /--allow-[a-z]+/;

/** If a denied permission caused the error, adds the command that grants the permission. */
export function withGrantHint(error: LeatError): LeatError {
  for (const cause of causesOf(error)) {
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
