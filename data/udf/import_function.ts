/** Imports a user function from the module that exports it. */
import { fieldOf, LeatError, type LeatErrorCode, withShownUrls } from "../../core/error.ts";
import { shownPath, shownUrls } from "../../core/shown_text.ts";
import type { Host } from "../host.ts";
import type { AnyFunction } from "./user_function.ts";

/** Time limit for loading the module of a function, in ms: a top-level `await` may never finish. */
const MODULE_LOAD_TIMEOUT_MS = 30_000;

/** What loading a function needs of the host. */
export type ModuleHost = Pick<Host, "importModule" | "sleep" | "evaluate" | "python">;

/** The function that a module exports under a name. Throws like `loadFunction`. */
export async function importFunction(
  { module, name }: { readonly module: string; readonly name: string },
  host: ModuleHost,
): Promise<AnyFunction> {
  const shown = shownPath(module);
  let exports: Record<string, unknown>;
  try {
    exports = await importInTime(module, host);
  } catch (cause) {
    // An error of the loader names the module, or one that it imports.
    const { message } = LeatError.from(cause);
    throw new LeatError(
      importCode(cause),
      `The module ${shown} of the user function "${name}" cannot be imported here: ${
        shownUrls(message, module)
      }`,
      { cause: cause instanceof LeatError ? cause : withShownUrls(cause, module) },
    );
  }
  if (!Object.hasOwn(exports, name)) {
    const names = Object.keys(exports).join(", ") || "nothing";
    throw new LeatError(
      "not_found",
      `The module ${shown} exports no "${name}"; it exports ${names}.`,
    );
  }
  const found = exports[name];
  if (typeof found === "function") return found as AnyFunction;
  throw new LeatError(
    "invalid_argument",
    `The export "${name}" of ${shown} is ${typeof found}, not a function.`,
  );
}

async function importInTime(module: string, host: ModuleHost): Promise<Record<string, unknown>> {
  const imported = new AbortController();
  const timeout = host.sleep(MODULE_LOAD_TIMEOUT_MS, imported.signal).then(() => {
    throw new LeatError(
      "deadline_exceeded",
      `it is not loaded after ${MODULE_LOAD_TIMEOUT_MS / 1_000} s; an "await" at its top level ` +
        "may wait for something that never happens",
    );
  });
  try {
    return await Promise.race([host.importModule(module), timeout]);
  } finally {
    imported.abort();
    timeout.catch(() => {});
  }
}

/**
 * Errors of the loader carry Node's codes; an error that the module throws while it runs does not.
 */
function importCode(error: unknown): LeatErrorCode {
  if (error instanceof LeatError) return error.code;
  const { message } = LeatError.from(error);
  const missing = fieldOf(error, "code") === "ERR_MODULE_NOT_FOUND" && /not found/i.test(message);
  return missing ? "not_found" : "failed_precondition";
}
