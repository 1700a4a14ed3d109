/**
 * A dispatcher that crashes again and again in one job, and compacts its journal in between, loses
 * nothing and hands out nothing twice. A seed that fails is repeated by putting it into `runRestarts`,
 * or into `sim/vopr.ts --workload restarts --seed`.
 */
import { NO_FAULTS } from "../../sim/options.ts";
import { drawOptions, runSwarm } from "../../sim/swarm.ts";
import { type DynamicOptions, runRestarts } from "../../sim/workload_dynamic.ts";
import { assert } from "../assert.ts";
import { expectAllKept, seeds } from "./lib/seeds.ts";

const SEEDS = 10;

Deno.test("a dispatcher that restarts many times on a journal that is compacted costs no element", async () => {
  const counters = await expectAllKept(runRestarts, seeds(SEEDS, drawOptions));
  assert(counters.get("dispatcher_crashed") > 4 * SEEDS);
});

Deno.test("many restarts of a dispatcher show one whose journal forgets its last record", async () => {
  const wrapJournal: DynamicOptions["wrapJournal"] = () => (journal) => {
    let kept: Parameters<typeof journal.append>[0] | undefined;
    return {
      append(record) {
        if (kept !== undefined) journal.append(kept);
        kept = record;
      },
      committed: () => journal.committed(),
      close: () => journal.close(),
    };
  };
  const { failed } = await runSwarm(
    runRestarts,
    seeds(SEEDS, (seed) => ({ seed, faults: NO_FAULTS, wrapJournal })),
    (_, { violations }) => violations.length > 0,
  );
  assert(failed.length > 0, "nobody has noticed");
});
