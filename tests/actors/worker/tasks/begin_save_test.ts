/** Beginning a save on a runner. */
import { LISTER_DIED } from "../../../../actors/worker/protocol.ts";
import type { RunnerFactory } from "../../../../actors/worker/runner/runner.ts";
import { SaveBeginnings } from "../../../../actors/worker/tasks/begin_save.ts";
import { LeatError } from "../../../../core/error.ts";
import { assertEquals } from "../../../assert.ts";

const REQUEST = {
  dataset: { datasetId: "1", fingerprint: "f", cardinality: 1, graph: new Uint8Array(1) },
  save: { folder: "/saved", overwrite: false, fingerprint: "f" },
  seed: "0",
  owner: "job",
};

/** Runners whose steps fail. */
function failing(error: LeatError): RunnerFactory {
  return {
    start: () => ({ next: () => Promise.reject(error), bytesRead: 0, dispose() {} }),
    listSplits: () => Promise.reject(error),
    close: () => Promise.resolve(),
  };
}

Deno.test("SaveBeginnings reports the death of its runner so that it is counted, and no other failure", async () => {
  const codes: unknown[] = [];
  for (const details of [{ reason: "runner_died" }, {}]) {
    const runners = failing(new LeatError("unavailable", "The runner is gone", { details }));
    const error = await new SaveBeginnings(runners).begin(REQUEST).catch(LeatError.from);
    const { code, details: given } = error as LeatError;
    codes.push([code, given?.["reason"]]);
  }
  assertEquals(codes, [["aborted", LISTER_DIED], ["unavailable", undefined]]);
});
