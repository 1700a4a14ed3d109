/**
 * The modes of jobs: what each of them refuses.
 *
 * @module
 */
import { assertRejects, assertStringIncludes } from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import { TestCluster } from "./lib.ts";

Deno.test("a job with an order of splits, or a save, is refused in modes that have none", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const ordered = { seed: "0123456789abcdef", shuffled: false };
  const inOrder = await assertRejects(
    () => cluster.open(datasetId, { processingMode: "OFF", ordered }),
    LeatError,
  );
  assertStringIncludes(
    inOrder.message,
    "An order of splits goes with processingMode DETERMINISTIC",
  );
  const save = { folder: "/saved", overwrite: false, fingerprint: "numbers" };
  const saved = await assertRejects(
    () => cluster.open(datasetId, { processingMode: "DYNAMIC", jobName: "save", save, ordered }),
    LeatError,
  );
  assertStringIncludes(saved.message, "A save goes with processingMode DETERMINISTIC, not DYNAMIC");
});
