/**
 * The cluster under faults. The goal: no promise about elements is broken in a thousand crashes of
 * each role, and each fault has really happened. The method: seeds; a seed that fails is repeated by
 * putting it into `runDynamic` (or, where all its faults are drawn, into `sim/vopr.ts --seed`).
 */
import type { Counters } from "../../sim/counters.ts";
import { drawOptions, formatRun, runSwarm } from "../../sim/swarm.ts";
import { ROLES } from "../../sim/crashes.ts";
import { WORKLOAD_FAULTS } from "../../sim/workload.ts";
import { type DynamicOptions, runDynamic } from "../../sim/workload_dynamic.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { startChild } from "../lib/child.ts";

const SEEDS = 80;

function* seeds(count: number, of: (seed: bigint) => DynamicOptions): Iterable<DynamicOptions> {
  for (let seed = 1n; seed <= count; seed++) yield of(seed);
}

/** Runs them all and fails on the first that breaks a promise. */
async function expectAllKept(runs: Iterable<DynamicOptions>, what: string): Promise<Counters> {
  const { counters, failed } = await runSwarm(
    runDynamic,
    runs,
    (_, { violations }) => violations.length > 0,
  );
  for (const { options, violations } of failed) {
    throw new Error(`${formatRun(options)}\n  ${violations.join("\n  ")}`);
  }
  console.log(`${what}: ${counters}`);
  return counters;
}

Deno.test(`${SEEDS} seeds of loss, duplication, reordering and a crash of each role deliver at most once, and finish`, async () => {
  const runs = seeds(SEEDS, (seed) => ({ seed, faults: WORKLOAD_FAULTS, crashes: ROLES }));
  const counters = await expectAllKept(runs, "crashes of all roles");
  counters.expectAll([
    "message_lost",
    "message_duplicated",
    "message_reordered",
    "connect_failed",
    "connect_refused",
    "link_reset",
    "link_silent",
    "log_tail_lost",
    "log_tail_torn",
  ]);
  for (const role of ROLES) assertEquals(counters.get(`${role}_crashed`), SEEDS);
});

Deno.test("loss, duplication and reordering alone deliver exactly once", async () => {
  const runs = seeds(SEEDS / 4, (seed) => ({ seed, faults: WORKLOAD_FAULTS }));
  const counters = await expectAllKept(runs, "no crashes");
  counters.expectAll(["message_lost", "message_duplicated", "message_reordered"]);
  for (const role of ROLES) assertEquals(counters.get(`${role}_crashed`), 0);
});

Deno.test("a crash of the dispatcher alone costs no element", async () => {
  const crashes = ["dispatcher"] as const;
  const runs = seeds(SEEDS / 4, (seed) => ({ seed, faults: WORKLOAD_FAULTS, crashes }));
  const counters = await expectAllKept(runs, "crashes of the dispatcher");
  for (const role of ROLES) {
    assertEquals(counters.get(`${role}_crashed`), role === "dispatcher" ? SEEDS / 4 : 0);
  }
});

Deno.test("the same seed gives the same trace: again, in another process, and with a readable timeline", async () => {
  const hashes: string[] = [];
  for (let seed = 1n; seed <= 6n; seed++) {
    const { hash } = await runDynamic(drawOptions(seed));
    assertEquals((await runDynamic(drawOptions(seed))).hash, hash, `SEED=${seed}`);
    hashes.push(`dynamic ${seed} ${hash}`);
  }
  assertEquals(new Set(hashes.map((line) => line.split(" ")[2])).size, 6);
  await using child = startChild("sim/vopr.ts", {
    args: ["--workload", "dynamic", "--seeds", "6", "--seed", "1", "--hashes"],
    flags: [],
  });
  for (const line of hashes) await child.line(new RegExp(`^${line}$`));
  assert((await child.status).success);
});

Deno.test("a timeline holds the seed, the options, the messages and no path of this machine", async () => {
  await using child = startChild("sim/vopr.ts", {
    args: ["--workload", "dynamic", "--seed", "3", "--timeline"],
    flags: [],
  });
  await child.line(/^dynamic: SEED=3 crashes=\S+ lossProbability=/);
  await child.line(
    /ms {2}worker-\d>dispatcher sent ask #\d+ getSplit \/worker\/task-\d+ → \/dispatcher/,
  );
  await child.line(/healed/);
  const { cluster } = await runDynamic(drawOptions(3n));
  assertEquals(cluster.trace.lines, []);
  assertMatch(cluster.trace.hash, /^[0-9a-f]{64}$/);
});
