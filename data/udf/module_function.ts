/** References to functions that modules export. */
import { LeatError } from "../../core/error.ts";
import { shownPath } from "../../core/shown_text.ts";
import type { AnyFunction } from "./user_function.ts";

/** A reference to an exported function; made by {@linkcode udf}. */
export class ModuleFunction<F extends AnyFunction = AnyFunction> {
  /** Carries the signature as a type only. */
  declare readonly signature: F;
  /** The module's absolute URL. */
  readonly module: string;
  /** The name of the export. */
  readonly name: string;

  /**
   * Does what {@linkcode udf} does.
   *
   * @throws {LeatError} `invalid_argument` if `module` is no absolute URL that others could import,
   * or `name` is empty.
   */
  constructor(module: string, name: string) {
    if (typeof module !== "string" || !URL.canParse(module) || module.startsWith("blob:")) {
      const given = typeof module === "string" ? shownPath(module) : module;
      throw new LeatError(
        "invalid_argument",
        `udf() takes the absolute URL of a module, not ${JSON.stringify(given)}; ` +
          `write udf(import.meta.resolve("./functions.ts"), "name").`,
      );
    }
    if (typeof name !== "string" || name === "") {
      throw new LeatError(
        "invalid_argument",
        `udf() takes the name of an export of ${shownPath(module)}, not ${JSON.stringify(name)}.`,
      );
    }
    this.module = module;
    this.name = name;
  }
}

/**
 * Refers to a function by the module that exports it, so that any host of the pipeline can import
 * it. Workers import the file anew for each task. A thread of your own program imports it once:
 * after a change start the program again.
 *
 * @param module Its absolute URL, which must name the same module on every host:
 * `import.meta.resolve("./f.ts")`.
 * @param name The export; `"default"` for the default one.
 * @throws {LeatError} `invalid_argument` for a relative URL, a `blob:` URL or an empty name.
 *
 * @example
 * ```ts
 * import { udf } from "./module_function.ts";
 * const augment = udf(import.meta.resolve("./augment.ts"), "augment");
 * ```
 */
// deno-lint-ignore no-explicit-any -- what it takes and returns is known to the module alone
export function udf(module: string, name: string): ModuleFunction<any>;
/** Refers to a function, as above, whose signature the caller asserts. Nothing checks it. */
export function udf<F extends AnyFunction>(module: string, name: string): ModuleFunction<F>;
export function udf(module: string, name: string): ModuleFunction {
  return new ModuleFunction(module, name);
}
