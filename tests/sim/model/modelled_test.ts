/**
 * `simulateCluster`. Goal: its results follow from the costs by arithmetic, whichever part is the
 * limit. Method: clusters with a known limit, and variants with one change.
 */
import { LeatError } from "../../../core/error.ts";
import { dispatcherAt } from "../../../actors/dispatcher/protocol.ts";
import { simulateCluster } from "../../../sim/model/modelled.ts";
import { ModelledCluster, type ModelledOptions } from "../../../sim/model/modelled_cluster.ts";
import { DISPATCHER_NODE } from "../../../sim/engine/service.ts";
import { assert, assertAlmostEquals, assertEquals, assertRejects } from "../../assert.ts";

/** A batch takes 100 ms of a host, and a step 20 ms of a trainer. */
const BASE: ModelledOptions = {
  workers: 4,
  trainers: 2,
  coresPerWorker: 8,
  batchMs: 800,
  stepMs: 20,
};
const TOLERANCE = 0.05;
/** A trainer whose first step does not end, and batches that take 100 ms each. */
const ONE = { workers: 1, trainers: 1, batchMs: 800, batchSpread: 0, stepMs: 1e9 };

function assertNear(actual: number, expected: number, what: string): void {
  assertAlmostEquals(actual, expected, TOLERANCE * expected, what);
}

Deno.test("simulateCluster: too few workers make as many batches as their cores can", async () => {
  const outcome = await simulateCluster(BASE);
  assertNear(outcome.batchesPerSecond, 40, "4 workers of 10 batches/s");
  assertNear(outcome.workerBusyFraction, 1, "busy");
  // 40 steps of 20 ms per second are two fifths of two trainers' time.
  assertNear(outcome.stallFraction, 0.6, "stalled");
  assertEquals(outcome.bottleneck, "workers");
  assert(outcome.timeToFirstBatchMs > 80, "no batch is there before it is made");
});

Deno.test("simulateCluster: with enough workers the trainers step as fast as they can", async () => {
  const outcome = await simulateCluster({ ...BASE, workers: 16 });
  assertNear(outcome.batchesPerSecond, 100, "2 trainers of 50 steps/s");
  assertNear(outcome.workerBusyFraction, 100 / 160, "what is made is what is taken");
  assertEquals(outcome.bottleneck, "trainers");
});

Deno.test("simulateCluster: throughput grows with the workers, up to the trainers' rate", async () => {
  const rates: number[] = [];
  for (const workers of [8, 32, 128]) {
    const { batchesPerSecond } = await simulateCluster({
      ...BASE,
      workers,
      batchMs: 8_000,
      stepMs: 40,
      batchBytes: 2 ** 25,
      measureMs: 10_000,
    });
    rates.push(batchesPerSecond);
  }
  const [few, more, many] = rates as [number, number, number];
  assertNear(few, 8, "8 workers of one batch/s");
  assertNear(more, 4 * few, "four times as many");
  assertNear(many, 50, "two trainers of 25 steps/s");
});

Deno.test("simulateCluster: batches queue at the network cards of trainers, and of workers", async () => {
  const network = { networkBytesPerSecond: 100e6, batchBytes: 10e6, workers: 16 };
  const receiving = await simulateCluster({ ...BASE, ...network });
  assertNear(receiving.batchesPerSecond, 20, "2 cards of 10 batches/s");
  assertNear(receiving.trainerNetworkFraction, 1, "receiving");
  assertEquals(receiving.bottleneck, "network");
  const sending = await simulateCluster({
    ...BASE,
    ...network,
    workers: 1,
    trainers: 16,
    batchMs: 8,
  });
  assertNear(sending.batchesPerSecond, 10, "one card of 10 batches/s");
  assertNear(sending.workerNetworkFraction, 1, "sending");
  assertEquals(sending.bottleneck, "network");
});

Deno.test("simulateCluster: a pipeline without parallel calls makes as many parallel batches as are requested", async () => {
  const alone = await simulateCluster({ ...BASE, parallelCalls: 1, coresPerWorker: 2 });
  assertNear(alone.batchesPerSecond, 10, "4 workers, 2 batches at once, 800 ms each");
});

Deno.test("simulateCluster: batches too large for the buffers of clients and workers are made on request", async () => {
  const made = async (mebibytes: number) => {
    const batchBytes = mebibytes * 2 ** 20;
    const cluster = new ModelledCluster({ ...ONE, batchBytes });
    await cluster.runFor(60_000);
    return Math.round(cluster.workersBusyMs / ONE.batchMs);
  };
  // 16 batches wait for the trainer in its first step, or as many as fit in 256 MiB; at the worker
  // two, or 64 MiB.
  assertEquals(await made(1), 1 + 16 + 2);
  assertEquals(await made(32), 1 + 8 + 2);
  assertEquals(await made(128), 1 + 2 + 1);
});

Deno.test("simulateCluster: batches so large that few requests fit leave no worker idle", async () => {
  const outcome = await simulateCluster({
    ...BASE,
    workers: 40,
    batchMs: 80_000,
    batchBytes: 2 ** 25,
    trainers: 4,
    warmUpMs: 60_000,
    measureMs: 100_000,
  });
  assertNear(outcome.workerBusyFraction, 1, "busy");
});

Deno.test("simulateCluster: pools of workers serve only their own jobs", async () => {
  const cluster = new ModelledCluster({ ...BASE, trainers: 4, jobs: 2, pools: 2 });
  await cluster.runUntil(() => cluster.trainers.every(({ counts }) => counts.batches > 0));
  let tasks: string[][] | undefined;
  cluster.dispatcherNode.system.ask(dispatcherAt(DISPATCHER_NODE), "describe", null, {
    timeoutMs: 1_000,
  }).then(({ jobs }) => {
    tasks = jobs.toSorted((a, b) => a.name < b.name ? -1 : 1).map(({ iterations }) =>
      iterations[0]!.tasks.map(({ worker }) => worker).sort()
    );
  });
  await cluster.runUntil(() => tasks !== undefined);
  assertEquals(tasks, [["worker-0", "worker-2"], ["worker-1", "worker-3"]]);
});

Deno.test("simulateCluster: equal options give equal results, and another seed another result", async () => {
  const run = (seed: bigint) => simulateCluster({ ...BASE, seed });
  const one = await run(1n);
  assertEquals(await run(1n), one);
  assert((await run(2n)).timeToFirstBatchMs !== one.timeToFirstBatchMs);
});

Deno.test("simulateCluster: invalid options are refused by name and value", async () => {
  const cases: [Partial<ModelledOptions>, RegExp][] = [
    [{ workers: -3 }, /workers is -3; it must be a whole number, 1 or more/],
    [{ batchMs: 0 }, /batchMs is 0; it must be above 0/],
    [{ jobs: 3 }, /jobs is 3; it must be no more than there are trainers \(2\)/],
    [{ delayMinMs: 2, delayMaxMs: 1 }, /delayMaxMs is 1; it must be no less than delayMinMs \(2\)/],
  ];
  for (const [wrong, message] of cases) {
    const error = await assertRejects(() => simulateCluster({ ...BASE, ...wrong }), LeatError);
    assert(message.test(error.message), error.message);
  }
});

Deno.test("modelled: trainers share slow workers, although some time out sooner than a batch takes", async () => {
  // The client's timeout for its first batch is shorter than a worker needs for one.
  const cluster = new ModelledCluster({
    workers: 16,
    trainers: 8,
    coresPerWorker: 8,
    batchMs: 8 * 26_000,
    batchBytes: 4 * 2 ** 20,
    batchesPerSplit: 1,
    stepMs: 1_000,
  });
  await cluster.runFor(300_000);
  const batches = cluster.trainers.map(({ counts }) => counts.batches);
  assert(2 * Math.min(...batches) > Math.max(...batches), `${batches}`);
});
