/**
 * Seeds in `tests/seeds.json` that once broke a promise: none may break one again. A failing seed's
 * report ends with the line to add there.
 */
import { drawOptions } from "../../sim/workloads/swarm.ts";
import { parseCrashes, parseFaults } from "../../sim/vopr/flags.ts";
import { runSeed } from "../../sim/vopr/seed_run.ts";
import { WORKLOADS } from "../../sim/workloads/workloads.ts";
import { assert, assertEquals } from "../assert.ts";
import KEPT from "../seeds.json" with { type: "json" };

/** A kept seed. Omitted options are drawn from the seed. */
interface KeptSeed {
  readonly workload: string;
  readonly seed: string;
  readonly faults?: string;
  readonly crashes?: string;
  /** What it found, as a sentence. */
  readonly found: string;
}

for (const { workload, seed, faults, crashes, found } of KEPT as readonly KeptSeed[]) {
  Deno.test(`kept seed ${seed} of ${workload} keeps its promises; it found ${found}`, async () => {
    assert(Object.hasOwn(WORKLOADS, workload), workload);
    const drawn = drawOptions(BigInt(seed));
    const options = {
      ...drawn,
      ...(faults === undefined ? {} : { faults: parseFaults(faults) }),
      ...(crashes === undefined ? {} : { crashes: parseCrashes(crashes) }),
    };
    const { violations } = await runSeed({ index: 0, workload, options });
    assertEquals(violations, []);
  });
}
