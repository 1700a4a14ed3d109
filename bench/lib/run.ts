/**
 * Runs benches one after the other and prints their results. Ctrl-C ends the program early, with the
 * results so far.
 */

import { StopRequests } from "../../cli/lib/stop_requests.ts";
import { type Bench, type RatioOptions, type RatioResult, resultTable, runRatio } from "./bench.ts";

/** How to run benches, and where to write the results. */
interface RunOptions extends RatioOptions {
  /** A file for the results as JSON. Default: none. */
  readonly json?: string | undefined;
}

/** Runs the benches in order, prints a table and returns its results. */
export async function runBenches(
  benches: readonly Bench[],
  options: RunOptions = {},
): Promise<RatioResult[]> {
  const results: RatioResult[] = [];
  using requests = new StopRequests();
  const runAll = async () => {
    for (const bench of benches) {
      console.error(`${bench.name} …`);
      results.push(await runRatio(bench, options));
    }
  };
  await requests.interrupting(runAll(), async () => {
    if (results.length > 0) await show(results, options.json);
    return `Interrupted after ${results.length} of ${benches.length} benches`;
  });
  await show(results, options.json);
  return results;
}

async function show(results: readonly RatioResult[], file: string | undefined): Promise<void> {
  console.log(resultTable(results));
  if (file === undefined) return;
  await Deno.writeTextFile(file, JSON.stringify(results, undefined, 2) + "\n");
}
