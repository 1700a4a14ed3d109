/**
 * Every workload under faults: the promises hold, and the intended faults have happened. A few
 * seeds of each show that the workload works, and `tests/sim/mutants_long_test.ts` that its checkers do;
 * `deno task vopr` runs many seeds. A failure says how to repeat it; if all its faults are drawn,
 * use `deno task vopr --workload NAME --seed SEED`.
 */
import type { Counters } from "../../../sim/engine/counters.ts";
import { type Role, ROLES } from "../../../sim/faults/crashes.ts";
import { NO_FAULTS } from "../../../sim/faults/options.ts";
import { drawOptions } from "../../../sim/workloads/swarm.ts";
import { runSeed } from "../../../sim/vopr/seed_run.ts";
import { type RunOptions, WORKLOAD_FAULTS } from "../../../sim/workloads/workload.ts";
import { type DynamicOptions, runRestarts } from "../../../sim/workloads/workload_dynamic.ts";
import { WORKLOADS } from "../../../sim/workloads/workloads.ts";
import { assert, assertEquals } from "../../assert.ts";
import { startChild } from "../../lib/child.ts";
import { expectAllKept, runUntilBroken, seeds } from "../lib/seeds.ts";

/** Some seeds of one workload. */
interface Case {
  readonly workload: string;
  /** Number of seeds, from the first on. */
  readonly seeds: number;
  readonly of: (seed: bigint) => RunOptions;
  /** Events that must have happened at least once over all seeds. */
  readonly happened?: readonly string[];
  /** Further checks of the counted events. */
  readonly expect?: (counters: Counters, seeds: number) => void;
}

const calm = (seed: bigint): RunOptions => ({ seed, faults: NO_FAULTS });
const crashing = (...crashes: readonly Role[]) => (seed: bigint): RunOptions => ({
  seed,
  faults: WORKLOAD_FAULTS,
  crashes,
});

/** In each run a node of each of these roles has crashed, and of no other. */
const haveCrashed = (...roles: readonly Role[]) => (counters: Counters, seeds: number) => {
  for (const role of ROLES) {
    assertEquals(counters.get(`${role}_crashed`), roles.includes(role) ? seeds : 0, role);
  }
};

/** Number of seeds, each of a drawn workload, that are run in two processes. */
const TRACES = 12;
/** The first of them: from here on the seeds draw many workloads. */
const FIRST_TRACE = 40;

const MESSAGES = ["message_lost", "message_duplicated", "message_reordered"];

const CASES: Readonly<Record<string, Case>> = {
  "loss, duplication, reordering and a crash of each role deliver at most once, and finish": {
    workload: "dynamic",
    seeds: 8,
    of: crashing(...ROLES),
    happened: [
      ...MESSAGES,
      "connect_failed",
      "connect_refused",
      "link_reset",
      "link_silent",
    ],
    expect: haveCrashed(...ROLES),
  },
  "loss, duplication and reordering alone deliver exactly once": {
    workload: "dynamic",
    seeds: 4,
    of: crashing(),
    happened: MESSAGES,
    expect: haveCrashed(),
  },
  "a crash of the dispatcher alone costs no element": {
    workload: "dynamic",
    seeds: 4,
    of: crashing("dispatcher"),
    expect: haveCrashed("dispatcher"),
  },
  "OFF gives every client all that every worker reads, through all faults": {
    workload: "off",
    seeds: 3,
    of: drawOptions,
  },
  "a dispatcher that restarts many times on a journal that is compacted costs no element": {
    workload: "restarts",
    seeds: 3,
    of: drawOptions,
    expect: (counters, seeds) => assert(counters.get("dispatcher_crashed") > 4 * seeds),
  },
  "each epoch gives each element once, whichever epochs its readers are in, through a crash of the dispatcher":
    {
      workload: "epochs",
      seeds: 3,
      of: crashing("dispatcher"),
      happened: MESSAGES,
      expect: haveCrashed("dispatcher"),
    },
  "epochs that are left early, and readers that begin again, get nothing twice through all faults":
    {
      workload: "epochs",
      seeds: 8,
      of: drawOptions,
      happened: ["epoch_left_early"],
    },
  "static policies give each share by its worker through crashes of worker, dispatcher and client":
    {
      workload: "static",
      seeds: 4,
      of: crashing(...ROLES),
      expect: haveCrashed(...ROLES),
    },
  "static policies give each share by its worker through partitions, pauses and all other faults": {
    workload: "static",
    seeds: 4,
    of: drawOptions,
    expect: (counters) => assert(counters.get("partition") + counters.get("node_paused") > 0),
  },
  "an offloaded pipeline gives each element once, keeps its ratio, and ends, through all faults": {
    workload: "offload",
    seeds: 8,
    of: drawOptions,
    happened: ["service_fell_back", "iterator_restored"],
  },
  "an offloaded pipeline gives each element once, whatever part workers run from when on": {
    workload: "exchange",
    seeds: 8,
    of: drawOptions,
    happened: ["service_fell_back", "iterator_restored"],
  },
  "a trainer whose plan does not hold comes to run the fastest candidate, and stays with it": {
    workload: "decisions",
    seeds: 4,
    of: drawOptions,
  },
  "pipelines drawn at random give all that their operators' definitions say": {
    workload: "pipelines",
    seeds: 8,
    of: calm,
  },
  "pipelines drawn at random give nothing twice and end through crashes and all other faults": {
    workload: "pipelines",
    seeds: 8,
    of: drawOptions,
    happened: ["node_crashed"],
  },
  "work that kills its runners fails its job, and costs the job beside it nothing, through crashes of worker and dispatcher":
    {
      workload: "poison",
      seeds: 8,
      of: crashing("dispatcher", "worker"),
      happened: [...MESSAGES, "runner_died", "job_failed"],
      expect: haveCrashed("dispatcher", "worker"),
    },
  "work that kills its runners fails its job, and costs the job beside it nothing, through all other faults":
    {
      workload: "poison",
      seeds: 4,
      of: drawOptions,
      happened: ["runner_died", "job_failed"],
    },
  "DETERMINISTIC gives the canonical stream through crashes of worker, dispatcher and trainer": {
    workload: "ordered",
    seeds: 3,
    of: crashing(...ROLES),
    happened: MESSAGES,
    expect: (counters, seeds) => {
      haveCrashed(...ROLES)(counters, seeds);
      assert(counters.get("iterator_restored") > seeds);
    },
  },
  "DETERMINISTIC gives the canonical stream through partitions, pauses, full disks and all other faults":
    {
      workload: "ordered",
      seeds: 4,
      of: drawOptions,
    },
  "consumers have their parts of the canonical stream": {
    workload: "consumers",
    seeds: 4,
    of: calm,
    happened: ["several_epochs"],
  },
  "consumers that begin again from one step read each epoch as if none had crashed": {
    workload: "consumers",
    seeds: 6,
    of: crashing("client"),
    happened: ["several_epochs", "consumers_restarted"],
  },
  "consumers are restored on clusters of other sizes and on other nodes, through all faults": {
    workload: "consumers",
    seeds: 4,
    of: drawOptions,
    happened: ["worker_came"],
  },
  "autoscaling: workers that leave in order lose nothing, and their number settles through a restart of the dispatcher":
    {
      workload: "autoscaling",
      seeds: 3,
      of: crashing("dispatcher"),
      happened: ["worker_came", "worker_left"],
    },
  "autoscaling: promises and limits hold through crashes, partitions and all other faults": {
    workload: "autoscaling",
    seeds: 2,
    of: drawOptions,
  },
  "coordinated reads: a worker that crashes mixes no two rounds in one step": {
    workload: "rounds",
    seeds: 2,
    of: crashing("worker"),
    happened: MESSAGES,
    expect: haveCrashed("worker"),
  },
  "coordinated reads: consumers stay in step through crashes of worker, dispatcher and a consumer":
    {
      workload: "rounds",
      seeds: 3,
      of: crashing(...ROLES),
      expect: haveCrashed(...ROLES),
    },
  "coordinated reads: consumers stay in step through partitions, pauses, full disks and all other faults":
    {
      workload: "rounds",
      seeds: 3,
      of: drawOptions,
    },
  "trainers that share see subsequences of streams through crashes of worker, dispatcher and trainer":
    {
      workload: "sharing",
      seeds: 3,
      of: crashing(...ROLES),
      happened: MESSAGES,
      expect: (counters, seeds) => {
        haveCrashed(...ROLES)(counters, seeds);
        assert(counters.get("elements_skipped") > seeds, "slow trainers have fallen behind");
      },
    },
  "trainers that share see subsequences of streams through partitions, pauses and all other faults":
    {
      workload: "sharing",
      seeds: 3,
      of: drawOptions,
    },
  "an element that fails costs that element alone, and its error comes in its place, through all faults":
    {
      workload: "failing",
      seeds: 10,
      of: drawOptions,
    },
  "a save has each element once through crashes, full disks and all other faults": {
    workload: "saving",
    seeds: 3,
    of: drawOptions,
  },
  "a save that is requested again after its storage has failed is complete, through all faults": {
    workload: "storage",
    seeds: 10,
    of: drawOptions,
    happened: ["storage_failed_to_commit", "storage_failed_to_open"],
  },
};

for (const [promise, { workload, seeds: count, of, ...came }] of Object.entries(CASES)) {
  Deno.test(promise, async () => {
    const counters = await expectAllKept(WORKLOADS[workload]!, seeds(count, of));
    counters.expectAll(came.happened ?? []);
    came.expect?.(counters, count);
  });
}

Deno.test("every workload is tried", () => {
  const tried = new Set(Object.values(CASES).map(({ workload }) => workload));
  assertEquals([...tried].sort(), Object.keys(WORKLOADS).sort());
});

Deno.test("the same seed gives the same trace in another process, whatever the workload", async () => {
  const drawn = ["--seed", `${FIRST_TRACE}`, "--seeds", `${TRACES}`];
  const args = [...drawn, "--hashes", "--jobs", "0"];
  await using child = startChild("sim/vopr.ts", { args, flags: ["-P=vopr"] });
  assert((await child.status).success);
  const hashes = [...child.stdout.text.matchAll(/^(\S+) (\d+) ([0-9a-f]{64})$/gm)];
  assertEquals(new Set(hashes.map(([, , , hash]) => hash)).size, TRACES);
  const workloads = new Set<string>();
  for (const [, workload, seed, hash] of hashes) {
    const options = drawOptions(BigInt(seed!));
    const outcome = await runSeed({ index: 0, workload: workload!, options });
    assertEquals(outcome.hash, hash, `${workload} SEED=${seed}`);
    workloads.add(workload!);
  }
  const isEnough = workloads.size > Object.keys(WORKLOADS).length / 2;
  assert(isEnough, `only these workloads were drawn; change FIRST_TRACE: ${[...workloads].join()}`);
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
  const { broken } = await runUntilBroken(
    runRestarts,
    seeds(10, (seed) => ({ seed, faults: NO_FAULTS, wrapJournal })),
  );
  assert(broken !== undefined, "no checker noticed");
});
