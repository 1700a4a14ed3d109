/**
 * One crash at any message: crashes a node at its n-th message, for many n over a whole job, and
 * checks the promises each time. `deno run sim/vopr.ts --crash ROLE` does so at every message.
 */
import { type Role, ROLES } from "../../sim/faults/crashes.ts";
import { NO_FAULTS } from "../../sim/faults/options.ts";
import { crashPoints } from "../../sim/workloads/swarm.ts";
import type { Workload } from "../../sim/workloads/workload.ts";
import { runDynamic } from "../../sim/workloads/workload_dynamic.ts";
import { runOrdered } from "../../sim/workloads/workload_ordered.ts";
import { runPoison } from "../../sim/workloads/workload_poison.ts";
import { runRounds } from "../../sim/workloads/workload_rounds.ts";
import { runSaving } from "../../sim/workloads/workload_saving.ts";
import { runSharing } from "../../sim/workloads/workload_sharing.ts";
import { assert, assertEquals } from "../assert.ts";
import { expectAllKept, runUntilBroken } from "./lib/seeds.ts";

/** Approximate number of messages tried per job. */
const POINTS = 3;

const WORKLOADS: Readonly<Record<string, Workload>> = {
  "a DYNAMIC job": runDynamic,
  "a job of a registered dataset": (options) => runDynamic({ ...options, registered: true }),
  "an OFF job": (options) => runDynamic({ ...options, mode: "OFF" }),
  "a DETERMINISTIC job": runOrdered,
  "a coordinated job": runRounds,
  "a sharing job": runSharing,
  "a save": runSaving,
};

async function sweep(workload: Workload, role: Role): Promise<void> {
  const all = await crashPoints(workload, { seed: 1n, role });
  const stride = Math.ceil(all.length / POINTS);
  const some = all.filter((_, i) => i % stride === 0);
  const counters = await expectAllKept(workload, some);
  // A crash shifts later messages, so a few points are beyond the end of the job.
  assert(counters.get(`${role}_crashed`) >= 0.8 * some.length);
}

for (const [job, workload] of Object.entries(WORKLOADS)) {
  for (const role of ROLES) {
    Deno.test(`${job} keeps its promises wherever a ${role} crashes and comes back`, () =>
      sweep(workload, role));
  }
}

Deno.test("poison has no crash points of clients, and ignores one that is given", async () => {
  assertEquals(await crashPoints(runPoison, { seed: 4n, role: "client" }), []);
  const crashPoint = { role: "client", message: 12 } as const;
  const counters = await expectAllKept(runPoison, [{ seed: 4n, faults: NO_FAULTS, crashPoint }]);
  assertEquals(counters.get("client_crashed"), 0);
});

Deno.test("crashes at every message reveal a dispatcher that answers before its journal is durable", async () => {
  const workload: Workload = (options) =>
    runDynamic({
      ...options,
      wrapJournal: () => (journal) => ({
        append: (record) => journal.append(record),
        committed() {
          journal.committed()?.catch(() => {});
          return undefined;
        },
        close: () => journal.close(),
      }),
    });
  const { broken } = await runUntilBroken(
    workload,
    await crashPoints(workload, { seed: 1n, role: "dispatcher" }),
  );
  assert(broken !== undefined, "no checker noticed");
});

Deno.test("fifty restarts of the dispatcher in one job lose nothing and hand out nothing twice", async () => {
  const crashPoint = { role: "dispatcher", message: 4, lives: 50 } as const;
  for (const workload of [runDynamic, runOrdered]) {
    const run = { seed: 1n, faults: NO_FAULTS, crashPoint };
    const counters = await expectAllKept(workload, [run]);
    assertEquals(counters.get("dispatcher_crashed"), 50);
  }
});

Deno.test("fifty restarts of a worker in one job hand out nothing twice, and it ends", async () => {
  const crashPoint = { role: "worker", message: 5, lives: 50 } as const;
  await expectAllKept(runDynamic, [{ seed: 1n, faults: NO_FAULTS, crashPoint }]);
});
