/**
 * The checkers must notice each deliberately wrong part, soon after a seed that once revealed it.
 * `deno task vopr --mutants` searches from the first seed on, and includes mutants that take long
 * to show.
 */
import { mutantOptions } from "../../sim/mutants/mutant.ts";
import { MUTANTS } from "../../sim/mutants/mutants.ts";
import { mutantRuns } from "../../sim/vopr/mutant_hunt.ts";
import { runSeed } from "../../sim/vopr/seed_run.ts";
import { WORKLOADS } from "../../sim/workloads/workloads.ts";
import { assert, assertEquals } from "../assert.ts";

/**
 * Number of seeds to try from the known one, which reveals the mutant no longer after a change of the
 * messages that the nodes exchange.
 */
const SEEDS_MAX = 1000;
const MUTANTS_MIN = 20;

for (const mutant of [...MUTANTS.values()].filter(({ isSlow }) => isSlow !== true)) {
  Deno.test(`the checkers see ${mutant.wrong}`, async () => {
    let tried = 0;
    for (const run of mutantRuns(mutant, BigInt(mutant.seed ?? 1), SEEDS_MAX)) {
      const { violations, checkers } = await runSeed(run);
      tried++;
      if (violations.length === 0) continue;
      assert(!checkers.includes("run"), violations[0]);
      return;
    }
    throw new Error(`no checker noticed ${mutant.name} in ${tried} seeds`);
  });
}

Deno.test(`there are ${MUTANTS_MIN} mutants or more, of every part of the service`, () => {
  assert(MUTANTS.size >= MUTANTS_MIN, `there are ${MUTANTS.size}`);
  const workloads = new Set([...MUTANTS.values()].map(({ workload }) => workload));
  for (const workload of ["dynamic", "ordered", "rounds", "sharing", "saving"]) {
    assert(workloads.has(workload), workload);
  }
});

Deno.test("a mutant is removed after its run, and no other run is affected", async () => {
  const mutant = MUTANTS.get("answer-before-append")!;
  let noticed = 0;
  for (const run of mutantRuns(mutant, BigInt(mutant.seed ?? 1), SEEDS_MAX)) {
    noticed = (await runSeed(run)).violations.length;
    if (noticed > 0) break;
  }
  assert(noticed > 0);
  for (let seed = 1n; seed <= 2n; seed++) {
    const options = mutantOptions(mutant, seed);
    const workload = mutant.workload;
    const sound = await runSeed({ index: 0, workload, options, endsEarly: true });
    assertEquals(sound.violations, [], `SEED=${seed}`);
    assertEquals((await WORKLOADS[workload]!(options)).violations, []);
  }
});
