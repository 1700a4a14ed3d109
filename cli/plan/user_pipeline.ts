/** The pipeline that a user's module exports, if workers can run it. */
import { inPreOrder } from "../../data/node.ts";
import { type Dataset, LeatError } from "../../mod.ts";
import { exportedDataset, failedPipeline } from "../pipeline/exported_dataset.ts";
import { withGrantHint } from "./grant_hint.ts";

/**
 * The dataset that a module exports, or the result of an exported function.
 * @param path Relative to the working directory.
 * @param name Which export. Default: `default`, else the only dataset or function.
 * @throws {UsageError} for a missing file or export, or several candidates without `name`.
 * @throws {LeatError} `invalid_argument` if it is no dataset, or workers could not run a part of
 * it; `failed_precondition` if the module throws; `permission_denied`, with the flag that would
 * grant it.
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

/** Refuses a pipeline of which workers cannot run a part. */
function checkRunsOnWorkers(dataset: Dataset<unknown>): void {
  const operators = inPreOrder(dataset.node);
  // What a service runs cannot be measured here.
  const number = operators.findIndex(({ division }) => division === "served");
  if (number >= 0) {
    throw new LeatError(
      "invalid_argument",
      `The pipeline reads from a service (${
        operators[number]!.kind
      }, operator ${number}), whose part cannot be ` +
        "measured here: export the dataset without this operator",
    );
  }
  try {
    dataset.serialize();
  } catch (error) {
    throw failedPipeline("The pipeline cannot be run by workers", error);
  }
}
