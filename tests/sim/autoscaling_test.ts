/**
 * Workers that come and go as the dispatcher wants, under faults: nothing that is promised of the data
 * is lost by it, and their number keeps to its limits and settles. A seed that fails is repeated with
 * `sim/vopr.ts --workload autoscaling --seed`.
 */
import type { Role } from "../../sim/crashes.ts";
import { drawOptions, formatRun, runSwarm } from "../../sim/swarm.ts";
import { type RunOptions, WORKLOAD_FAULTS } from "../../sim/workload.ts";
import { runAutoscaling } from "../../sim/workload_autoscaling.ts";
import { assert } from "../assert.ts";

const SEEDS = 3;

/** Runs them all and fails on the first that breaks a promise. */
async function expectAllKept(of: (seed: bigint) => RunOptions) {
  const runs = Array.from({ length: SEEDS }, (_, i) => of(BigInt(i + 1)));
  const { counters, failed } = await runSwarm(
    runAutoscaling,
    runs,
    (_, { violations }) => violations.length > 0,
  );
  for (const { options, violations } of failed) {
    throw new Error(`${formatRun(options)}\n  ${violations.join("\n  ")}`);
  }
  return counters;
}

Deno.test("autoscaling: workers that leave in order lose nothing, and their number settles through a restart of the dispatcher", async () => {
  const crashes: Role[] = ["dispatcher"];
  const counters = await expectAllKept((seed) => ({ seed, faults: WORKLOAD_FAULTS, crashes }));
  assert(counters.get("worker_came") > SEEDS);
  assert(counters.get("worker_left") > 0);
});

Deno.test("autoscaling: promises and limits hold through crashes, partitions and all other faults", async () => {
  await expectAllKept(drawOptions);
});
