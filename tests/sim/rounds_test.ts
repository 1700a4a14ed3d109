/**
 * Coordinated reads under faults: whatever happens to a cluster, consumers of one step are given one
 * round of one task. A seed that fails is repeated by putting it into
 * `runRounds`, or, where all its faults are drawn, into `sim/vopr.ts --workload rounds --seed`.
 */
import { ROLES } from "../../sim/crashes.ts";
import { drawOptions, formatRun, runSwarm } from "../../sim/swarm.ts";
import { type RunOptions, WORKLOAD_FAULTS } from "../../sim/workload.ts";
import { runRounds } from "../../sim/workload_rounds.ts";
import { assertEquals } from "../assert.ts";

const SEEDS = 6;

function* seeds(of: (seed: bigint) => RunOptions): Iterable<RunOptions> {
  for (let seed = 1n; seed <= SEEDS; seed++) yield of(seed);
}

/** Runs them all and fails on the first that breaks a promise. */
async function expectAllKept(of: (seed: bigint) => RunOptions) {
  const { counters, failed } = await runSwarm(
    runRounds,
    seeds(of),
    (_, { violations }) => violations.length > 0,
  );
  for (const { options, violations } of failed) {
    throw new Error(`${formatRun(options)}\n  ${violations.join("\n  ")}`);
  }
  return counters;
}

Deno.test("coordinated reads: a worker that crashes mixes no two rounds in one step", async () => {
  const counters = await expectAllKept((seed) => ({
    seed,
    faults: WORKLOAD_FAULTS,
    crashes: ["worker"],
  }));
  assertEquals(counters.get("worker_crashed"), SEEDS);
  counters.expectAll(["message_lost", "message_duplicated", "message_reordered", "link_silent"]);
});

Deno.test("coordinated reads: consumers stay in step through crashes of worker, dispatcher and a consumer", async () => {
  const counters = await expectAllKept((seed) => ({
    seed,
    faults: WORKLOAD_FAULTS,
    crashes: ROLES,
  }));
  for (const role of ROLES) assertEquals(counters.get(`${role}_crashed`), SEEDS);
});

Deno.test("coordinated reads: consumers stay in step through partitions, pauses, full disks and all other faults", async () => {
  await expectAllKept(drawOptions);
});
