/** Saves, for tests of the dispatcher. */
import { packSplits } from "../../../data/sharding/split_table.ts";
import { hashBytes } from "../../../core/hash.ts";
import { tableOf, type TestCluster } from "./lib.ts";
import type { TestWorker } from "./test_worker.ts";

/** The parameters of a save, as a client gives them. */
export const SAVE = {
  jobName: "distributedSave /saved",
  processingMode: "DETERMINISTIC",
  ordered: { seed: "0000000000000000", shuffled: false },
  save: { folder: "/saved", overwrite: false, fingerprint: hashBytes("numbers") },
} as const;

/** What a worker answers that begins a save of 900 splits. */
export const BEGUN = {
  ...{ id: "save", bounds: packSplits(tableOf(900)), runs: [] },
  ...{ entries: 0, upTo: 0, elements: 0, sizeBytes: 0 },
};

/** Begins a save of 900 splits on one worker. */
export async function openSave(
  cluster: TestCluster,
): Promise<{ worker: TestWorker; clientId: number; taskId: number }> {
  const worker = cluster.worker("w");
  worker.begun = BEGUN;
  await worker.heartbeat();
  const { clientId } = await cluster.open(await cluster.dataset(), SAVE);
  const [taskId = 0] = await worker.heartbeat();
  return { worker, clientId, taskId };
}
