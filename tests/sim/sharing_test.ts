/**
 * Ephemeral data sharing under faults: whatever happens, each trainer sees a subsequence of what each
 * worker produces. A seed that fails is repeated by putting it into
 * `runSharing`, or, where all its faults are drawn, into `sim/vopr.ts --workload sharing --seed`.
 */
import { ROLES } from "../../sim/crashes.ts";
import { drawOptions, formatRun, runSwarm } from "../../sim/swarm.ts";
import { type RunOptions, WORKLOAD_FAULTS } from "../../sim/workload.ts";
import { runSharing } from "../../sim/workload_sharing.ts";
import { assert, assertEquals } from "../assert.ts";

const SEEDS = 8;

const crashing = (seed: bigint): RunOptions => {
  return { seed, faults: WORKLOAD_FAULTS, crashes: ROLES };
};

function* seeds(of: (seed: bigint) => RunOptions, count: number): Iterable<RunOptions> {
  for (let seed = 1n; seed <= count; seed++) yield of(seed);
}

/** Runs them all and fails on the first that breaks a promise. */
async function expectAllKept(runs: Iterable<RunOptions>) {
  const { counters, failed } = await runSwarm(
    runSharing,
    runs,
    (_, { violations }) => violations.length > 0,
  );
  for (const { options, violations } of failed) {
    throw new Error(`${formatRun(options)}\n  ${violations.join("\n  ")}`);
  }
  return counters;
}

Deno.test("trainers that share see subsequences of streams through crashes of worker, dispatcher and trainer", async () => {
  const counters = await expectAllKept(seeds(crashing, SEEDS));
  for (const role of ROLES) assertEquals(counters.get(`${role}_crashed`), SEEDS);
  counters.expectAll(["message_lost", "message_duplicated", "message_reordered"]);
  assert(counters.get("elements_skipped") > SEEDS, "slow trainers have fallen behind");
});

Deno.test("trainers that share see subsequences of streams through partitions, pauses and all other faults", async () => {
  await expectAllKept(seeds(drawOptions, SEEDS));
});

Deno.test("the same seed gives the same trace of sharing trainers", async () => {
  for (let seed = 1n; seed <= 3n; seed++) {
    const { hash } = await runSharing(drawOptions(seed));
    assertEquals((await runSharing(drawOptions(seed))).hash, hash, `SEED=${seed}`);
  }
});
