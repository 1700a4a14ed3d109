/**
 * Coordinated reads under faults: whatever happens to a cluster, consumers of one step are given one
 * round of one task, and wrong actors are found out. A seed that fails is repeated by putting it into
 * `runRounds`, or, where all its faults are drawn, into `sim/vopr.ts --workload rounds --seed`.
 */
import { ROLES } from "../../sim/crashes.ts";
import { drawOptions, formatRun, runSwarm } from "../../sim/swarm.ts";
import { WORKLOAD_FAULTS } from "../../sim/workload.ts";
import { type RoundsOptions, runRounds } from "../../sim/workload_rounds.ts";
import { assert, assertEquals } from "../assert.ts";
import { MUTANTS } from "./rounds_mutants.ts";

const SEEDS = 30;
/** Seeds within which a wrong actor must be noticed. */
const MUTANT_SEEDS = 60;

function* seeds(
  of: (seed: bigint) => RoundsOptions,
  count = SEEDS,
): Iterable<RoundsOptions> {
  for (let seed = 1n; seed <= count; seed++) yield of(seed);
}

/** Runs them all and fails on the first that breaks a promise. */
async function expectAllKept(of: (seed: bigint) => RoundsOptions) {
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
  const counters = await expectAllKept(drawOptions);
  counters.expectAll(["partition", "node_paused", "link_clogged", "wall_clock_stepped"]);
});

for (const [name, tamper] of Object.entries(MUTANTS)) {
  Deno.test(`the checkers of coordinated reads see ${name}`, async () => {
    const { failed } = await runSwarm(
      runRounds,
      seeds(
        (seed) => ({ seed, faults: WORKLOAD_FAULTS, crashes: ["worker"], tamper }),
        MUTANT_SEEDS,
      ),
      (_, { violations }) => violations.length > 0,
    );
    assert(failed.length > 0, `nobody has noticed in ${MUTANT_SEEDS} seeds`);
  });
}
