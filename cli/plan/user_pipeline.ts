/** The pipeline that a user's module exports. */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { inPreOrder } from "../../data/node.ts";
import { Dataset, LeatError } from "../../mod.ts";
import { UsageError } from "../lib/args.ts";
import { withGrantHint } from "./grant_hint.ts";

/**
 * Imports a module and returns the dataset that it exports, or the result of an exported function.
 * @param path Relative to the working directory.
 * @param name Which export. Default: `default`, else the only dataset or function.
 * @throws {UsageError} for a missing file or export, or several candidates without `name`.
 * @throws {LeatError} `invalid_argument` if it is no dataset, or workers could not run a part of
 * it; `failed_precondition` if the module throws; `permission_denied`, with the flag that would
 * grant it.
 *
 * @example
 * ```ts
 * import { loadPipeline } from "./user_pipeline.ts";
 *
 * const load = () => loadPipeline("cli/plan/demo_pipeline.ts");
 * ```
 */
export async function loadPipeline(path: string, name?: string): Promise<Dataset<unknown>> {
  const exports = await importModule(path);
  const chosen = name ?? chooseExport(path, exports);
  if (!Object.hasOwn(exports, chosen)) {
    throw new UsageError(
      `'${path}' exports no '${chosen}'; it exports ${listed(Object.keys(exports))}`,
    );
  }
  let value = exports[chosen];
  try {
    value = await (typeof value === "function" ? value() : value);
  } catch (error) {
    throw failed(`'${chosen}' of '${path}' failed when it was called`, error);
  }
  if (!(value instanceof Dataset)) {
    throw new LeatError(
      "invalid_argument",
      `'${chosen}' of '${path}' is no Dataset of this Leat, but ${
        kindOf(value)
      }: export a Dataset, ` +
        "or a function that returns one",
    );
  }
  checkRunsOnWorkers(value);
  return value;
}

async function importModule(path: string): Promise<Record<string, unknown>> {
  const file = resolve(path);
  try {
    const { isDirectory } = await Deno.stat(file);
    if (isDirectory) throw new UsageError(`'${path}' is a folder: name a module in it`);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    if (!(error instanceof Deno.errors.NotFound)) throw failed(`'${path}' cannot be read`, error);
    throw new UsageError(`There is no file '${path}' (that would be ${file})`);
  }
  try {
    return await import(pathToFileURL(file).href);
  } catch (error) {
    throw failed(`'${path}' cannot be imported`, error);
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
      : `'${path}' exports ${listed(fit)}: say which with --export`,
  );
}

/** The whole pipeline must be able to run on workers. */
function checkRunsOnWorkers(dataset: Dataset<unknown>): void {
  const operators = inPreOrder(dataset.node);
  // The part before a service runs elsewhere, and cannot be measured here.
  const number = operators.findIndex(({ division }) => division === "served");
  if (number >= 0) {
    throw new LeatError(
      "invalid_argument",
      `The pipeline reads a service (${
        operators[number]!.kind
      }, operator ${number}): plan for what ` +
        "comes before it",
    );
  }
  try {
    dataset.serialize();
  } catch (error) {
    throw failed("The pipeline cannot be run by workers", error);
  }
}

function failed(what: string, error: unknown): LeatError {
  const code = error instanceof LeatError ? error.code : "failed_precondition";
  return withGrantHint(new LeatError(code, what, { cause: error }));
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? "nothing" : names.map((name) => `'${name}'`).join(", ");
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return typeof value === "object"
    ? `a ${value.constructor?.name ?? "object"}`
    : `a ${typeof value}`;
}
