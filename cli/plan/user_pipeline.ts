/** Loads the pipeline that a user's module exports, and checks that workers can run it. */
import { inPreOrder } from "../../data/node.ts";
import { type Dataset, LeatError } from "../../mod.ts";
import { exportedDataset, failedPipeline } from "../pipeline/exported_dataset.ts";
import { withGrantHint } from "./grant_hint.ts";

/**
 * Returns the dataset that a module exports, or that an exported function returns.
 * @param path Relative to the working directory.
 * @param name The name of the export. Default: `default`, else the only dataset or function.
 * @throws {UsageError} for a missing file or export, or several candidates without `name`.
 * @throws {LeatError} `invalid_argument` if the export is no dataset, or workers cannot run a part of
 * it; `failed_precondition` if the module throws; `permission_denied` if it lacks a permission, whose
 * flag the message names.
 */
export async function loadPipeline(path: string, name?: string): Promise<Dataset<unknown>> {
  try {
    const dataset = await exportedDataset(path, name);
    checkRunsOnWorkers(dataset);
    return dataset;
  } catch (error) {
    throw error instanceof LeatError ? withGrantHint(error) : error;
  }
}

/** Throws if workers cannot run a part of the pipeline. */
function checkRunsOnWorkers(dataset: Dataset<unknown>): void {
  const operators = inPreOrder(dataset.node);
  const number = operators.findIndex(({ division }) => division === "served");
  if (number >= 0) {
    throw new LeatError(
      "invalid_argument",
      `The pipeline reads from a service (${
        operators[number]!.kind
      }, operator ${number}). What the service ` +
        "runs cannot be measured here: export the dataset without this operator",
    );
  }
  try {
    dataset.serialize();
  } catch (error) {
    throw failedPipeline("The pipeline cannot be run by workers", error);
  }
}
