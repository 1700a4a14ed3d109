/** The dataset that a user's module exports. */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { shownClass, shownPath } from "../../core/shown_text.ts";
import { Dataset, LeatError } from "../../mod.ts";
import { UsageError } from "../lib/args.ts";

/**
 * Imports a module and returns the dataset that it exports, or the result of an exported function.
 * @param path Relative to the working directory.
 * @param name Which export. Default: `default`, else the only dataset or function.
 * @param args The argument of an exported function. Default: it is called without one.
 * @throws {UsageError} for a missing file or export, or several candidates without `name`.
 * @throws {LeatError} `invalid_argument` if the export is no dataset, or `args` are given and it is no
 * function; `failed_precondition` if the module throws.
 */
export async function exportedDataset(
  path: string,
  name?: string,
  args?: unknown,
): Promise<Dataset<unknown>> {
  const exports = await importModule(path);
  const chosen = name ?? chooseExport(path, exports);
  if (!Object.hasOwn(exports, chosen)) {
    throw new UsageError(
      `'${path}' exports no '${chosen}'; it exports ${listed(Object.keys(exports))}`,
    );
  }
  let value = exports[chosen];
  if (args !== undefined && typeof value !== "function") {
    throw new LeatError(
      "invalid_argument",
      `'${chosen}' of '${path}' is no function, so it takes no arguments: export a function that ` +
        "takes them",
    );
  }
  try {
    value =
      await (typeof value === "function" ? args === undefined ? value() : value(args) : value);
  } catch (error) {
    const lacksArgument = args === undefined && typeof value === "function" && value.length > 0;
    const remedy = lacksArgument
      ? " without its argument: pass args={} in Python, or give it a default, as in ({ size = 4 } = {}) => …"
      : "";
    throw failedPipeline(`'${chosen}' of '${path}' failed when it was called${remedy}`, error);
  }
  if (value instanceof Dataset) return value;
  throw new LeatError(
    "invalid_argument",
    `'${chosen}' of '${path}' is no Dataset of this copy of Leat, but ${
      kindOf(value)
    }: export a Dataset, ` +
      "or a function that returns one",
  );
}

async function importModule(path: string): Promise<Record<string, unknown>> {
  const shown = shownPath(path);
  if (shown !== path || /^[a-z][a-z0-9+.-]+:\/\//i.test(path)) {
    throw new UsageError(`'${shown}' is a URL: name the file of a module on this machine`);
  }
  const file = resolve(path);
  try {
    const { isDirectory } = await Deno.stat(file);
    if (isDirectory) throw new UsageError(`'${path}' is a folder: name a module in it`);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    if (!(error instanceof Deno.errors.NotFound)) {
      throw failedPipeline(`'${path}' cannot be read`, error);
    }
    throw new UsageError(`There is no file '${path}' (that would be ${file})`);
  }
  try {
    return await import(pathToFileURL(file).href);
  } catch (error) {
    throw failedPipeline(`'${path}' cannot be imported`, error);
  }
}

function chooseExport(path: string, exports: Record<string, unknown>): string {
  if ("default" in exports) return "default";
  const fit = Object.keys(exports).filter((key) =>
    exports[key] instanceof Dataset || typeof exports[key] === "function"
  );
  if (fit.length === 1) return fit[0]!;
  throw new UsageError(
    fit.length === 0
      ? `'${path}' exports neither a Dataset nor a function; it exports ` +
        listed(Object.keys(exports))
      : `'${path}' exports ${listed(fit)}: say which with --export, or export= in Python`,
  );
}

/** The error of a pipeline's module, with what went wrong there as its cause. */
export function failedPipeline(what: string, cause: unknown): LeatError {
  const code = cause instanceof LeatError ? cause.code : "failed_precondition";
  return new LeatError(code, what, { cause });
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? "nothing" : names.map((name) => `'${name}'`).join(", ");
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return typeof value === "object" ? shownClass(value) : `a ${typeof value}`;
}
