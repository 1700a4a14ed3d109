/**
 * DETERMINISTIC under faults: whatever happens to a cluster, the training loop is given the canonical
 * stream. A seed that fails is repeated by putting it into
 * `runOrdered`, or, where all its faults are drawn, into `sim/vopr.ts --workload ordered --seed`.
 */
import { ROLES } from "../../sim/crashes.ts";
import { drawOptions, formatRun, runSwarm } from "../../sim/swarm.ts";
import { type RunOptions, WORKLOAD_FAULTS } from "../../sim/workload.ts";
import { runOrdered } from "../../sim/workload_ordered.ts";
import { assert, assertEquals } from "../assert.ts";
import { startChild } from "../lib/child.ts";

const SEEDS = 8;

function* seeds(of: (seed: bigint) => RunOptions, count = SEEDS): Iterable<RunOptions> {
  for (let seed = 1n; seed <= count; seed++) yield of(seed);
}

const crashing = (seed: bigint): RunOptions => {
  return { seed, faults: WORKLOAD_FAULTS, crashes: ROLES };
};

/** Runs them all and fails on the first that breaks a promise. */
async function expectAllKept(runs: Iterable<RunOptions>) {
  const { counters, failed } = await runSwarm(
    runOrdered,
    runs,
    (_, { violations }) => violations.length > 0,
  );
  for (const { options, violations } of failed) {
    throw new Error(`${formatRun(options)}\n  ${violations.join("\n  ")}`);
  }
  return counters;
}

Deno.test("DETERMINISTIC gives the canonical stream through crashes of worker, dispatcher and trainer", async () => {
  const counters = await expectAllKept(seeds(crashing));
  for (const role of ROLES) assertEquals(counters.get(`${role}_crashed`), SEEDS);
  assert(counters.get("iterator_restored") > SEEDS);
  counters.expectAll(["message_lost", "message_duplicated", "message_reordered", "link_silent"]);
});

Deno.test("DETERMINISTIC gives the canonical stream through partitions, pauses, full disks and all other faults", async () => {
  await expectAllKept(seeds(drawOptions));
});

Deno.test("the same seed gives the same DETERMINISTIC trace, again and in another process", async () => {
  const hashes: string[] = [];
  for (let seed = 1n; seed <= 4n; seed++) {
    const { hash } = await runOrdered(drawOptions(seed));
    assertEquals((await runOrdered(drawOptions(seed))).hash, hash, `SEED=${seed}`);
    hashes.push(`ordered ${seed} ${hash}`);
  }
  assertEquals(new Set(hashes.map((line) => line.split(" ")[2])).size, 4);
  await using child = startChild("sim/vopr.ts", {
    args: ["--workload", "ordered", "--seeds", "4", "--seed", "1", "--hashes"],
    flags: [],
  });
  for (const line of hashes) await child.line(new RegExp(`^${line}$`));
  assert((await child.status).success);
});
