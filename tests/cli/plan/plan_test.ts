/**
 * `deno task plan`. Its output follows from the measurements, and wrong input is named with its
 * remedy. Tested with pipelines of known cost, profiles with a known best size, and real workers
 * compared with the model.
 */
import { basename, dirname } from "node:path";
import { type Machines, sweepClusters } from "../../../cli/plan/clusters.ts";
import { withGrantHint } from "../../../cli/plan/grant_hint.ts";
import { limitsOf, nextLimit } from "../../../cli/plan/limits.ts";
import { timeLimitMs, type TimeLimits } from "../../../cli/plan/progress_timeout.ts";
import { UsageError } from "../../../cli/lib/args.ts";
import { percentile } from "../../../cli/lib/statistics.ts";
import { type Profile, profilePipeline, undisturbed } from "../../../cli/plan/profile.ts";
import { profileModule } from "../../../cli/plan/profiled_module.ts";
import { type Plan, planText, renderPlan } from "../../../cli/plan/report.ts";
import { fastestMs } from "../../../cli/plan/split_cost.ts";
import { loadPipeline } from "../../../cli/plan/user_pipeline.ts";
import { Accelerator } from "../../../cli/simulate/accelerator.ts";
import { verify, verifyUpTo } from "../../../cli/plan/verification.ts";
import { Dataset, LeatError, PAPER_PRICES } from "../../../mod.ts";
import { SimCluster } from "../../../sim/engine/cluster.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { circularError } from "../../lib/circular_error.ts";
import { namesIn } from "../../lib/temp_folder.ts";
import { until } from "../../lib/until.ts";
import { withModule } from "./plan_modules.ts";

/** A batch of a MB takes a worker 100 ms. */
const PROFILE: Profile = {
  ...{ batches: 50, runs: 1, measuredMs: 5_000, firstBatchMs: 900 },
  ...{ batchMs: 100, batchLowMs: 90, batchHighMs: 120, variation: 0.1, cpuMs: 95, threadMs: 94 },
  percentilesMs: { p10: 90, p50: 100, p90: 115, p99: 130 },
  ...{ computingShare: 0.95, encodeMs: 1, decodeMs: 0.1, batchBytes: 1e6, memoryBytes: 3e8 },
  ...{ contention: 1, splitsPerBatch: 0.1, splitMs: 0.5, readsAhead: true },
  operators: [{ operator: "map", number: 0, selfMs: 80, waitMs: 1 }],
  advice: "map (operator 0) takes 80 % of the time.",
};

const QUICKLY = { seconds: 0.3 };

/** An accelerator consumes a batch every 20 ms. */
const MACHINES: Machines = {
  ...{ stepMs: 20, trainers: 1, workersMax: 16, coresPerWorker: 8, networkBytesPerSecond: 1.25e9 },
  ...{
    roundTripMs: 1.2,
    workerMemoryGB: 0.3,
    trainerCores: 96,
    trainerMemoryGB: 335,
    acceleratorsPerTrainer: 1,
  },
  ...{ prices: PAPER_PRICES, stallMax: 0.02 },
};

function waiting(elements: number, ms: number): Dataset<unknown> {
  return Dataset.range(elements).map(async (x, { ms }) => {
    await new Promise((resolve) => setTimeout(resolve, ms));
    return x;
  }, { captures: { ms } });
}

Deno.test("deno task plan leaves deno.lock as it is, whatever packages a pipeline imports", async () => {
  const config = await Deno.readTextFile(new URL("../../../deno.json", import.meta.url));
  const { command } = JSON.parse(config).tasks.plan as { readonly command: string };
  // Deno adds the pipeline's packages to the lock file of the run.
  const [, lock] = /^mkdir -p \.cache && cp deno\.lock (\S+) && deno run /.exec(command) ?? [];
  assert(lock !== undefined && command.includes(` --lock=${lock} `), command);
});

Deno.test("loadPipeline: a dataset, or the result of a function, by name or as the only candidate", async () => {
  await withModule(
    "export const only = Dataset.range(3); export const limit = 7;",
    async (path) => {
      assertEquals((await loadPipeline(path)).cardinality(), 3);
    },
  );
  const code = "export const a = async () => Dataset.range(4);\nexport const b = Dataset.range(5);";
  await withModule(code, async (path) => {
    assertEquals((await loadPipeline(path, "a")).cardinality(), 4);
    assertEquals((await loadPipeline(path, "b")).cardinality(), 5);
    await assertRejects(() => loadPipeline(path), LeatError, "with --export, or export= in Python");
    await assertRejects(
      () => loadPipeline(path, "c"),
      LeatError,
      "exports no 'c'; it exports 'a', 'b'",
    );
  });
});

Deno.test("loadPipeline: refuses anything but a pipeline for workers, with the reason", async () => {
  await assertRejects(() => loadPipeline("nowhere.ts"), LeatError, "There is no file 'nowhere.ts'");
  for (const url of ["https://user:SECRET@host/x.ts", "https:user:SECRET@host/x.ts"]) {
    const { message } = await assertRejects(() => loadPipeline(url), UsageError, "is a URL");
    assert(!message.includes("SECRET"), message);
  }
  const refused = [
    ["export const limit = 7;", "exports neither a Dataset nor a function; it exports 'limit'"],
    ["throw new Error('not this module');", "cannot be imported"],
    ["export default () => [1, 2];", "is no Dataset of this copy of Leat, but Array:"],
    ["export default () => (function* () {})();", "of this copy of Leat, but Generator:"],
    [
      "export default () => { throw new Error('x'); };",
      "'default' of",
      "failed when it was called",
    ],
    [
      "export default Dataset.range(3).distribute({ service: 'ws://h:1', processingMode: 'OFF' });",
      "reads from a service (distribute, operator 0)",
    ],
    [
      "let y = 3; export default Dataset.range(3).map((x) => x + y);",
      "The pipeline cannot be run by workers",
    ],
  ] as const;
  for (const [code, ...parts] of refused) {
    await withModule(code, async (path) => {
      const error = await assertRejects(() => loadPipeline(path), LeatError);
      for (const part of parts) assertStringIncludes(error.message, part);
    });
  }
});

Deno.test("profilePipeline: names what computes, and excludes the filling of a buffer", async () => {
  const computing = Dataset.range(10_000).map((x) => {
    for (let i = 0; i < 2e7; i++) x = Math.imul(x ^ i, 0x9e3779b1);
    return x;
  });
  const { waits, computes } = await until(async () => {
    const waits = await profilePipeline(waiting(10_000, 5).shuffle(20), QUICKLY);
    // If the machine becomes busy after the buffer is filled, single batches slow down: try again.
    if (waits.firstBatchMs <= 8 * waits.percentilesMs.p50) return false;
    const computes = await profilePipeline(computing, QUICKLY);
    // Of one thread: other programs make it wait, but do not work on it. Of few batches none may be timed.
    return computes.threadMs > 4 * waits.threadMs && { waits, computes };
  });
  assert(waits.batchMs >= 4, `${waits.batchMs} ms for an element that waits 5 ms`);
  const [map] = computes.operators;
  assertEquals([map!.operator, map!.number], ["map", 0]);
  assertStringIncludes(computes.advice, "map (operator 0) takes");
});

Deno.test("profilePipeline: restarts a short dataset, and measures the size and the splits of its batches", async () => {
  const seen: number[] = [];
  // If the machine paused meanwhile, measure again.
  const profile = await until(async () => {
    const options = {
      seconds: 0.2,
      onProgress: (batches: number) => seen.push(batches),
    };
    const profile = await profilePipeline(Dataset.range(40).batch(20), options);
    return profile.runs > 2 && profile.batches > 10 && seen.length > 0 && profile;
  });
  // 20 elements of 8 bytes, and their envelope.
  assert(profile.batchBytes > 160 && profile.batchBytes < 1_000, `${profile.batchBytes}`);
  assertEquals(profile.splitsPerBatch, 1);
  const undivided = Dataset.fromGenerator(function* () {
    yield* [1, 2, 3];
  });
  assertEquals((await profilePipeline(undivided, { seconds: 0.1 })).splitsPerBatch, undefined);
});

Deno.test("profilePipeline: names the element that failed, and refuses a dataset without elements", async () => {
  const third = Dataset.range(10).map((x) => {
    if (x === 2) throw new Error("not three");
    return x;
  });
  const error = await assertRejects(() => profilePipeline(third, QUICKLY), LeatError);
  assertStringIncludes(error.message, "Element 3 of the pipeline failed");
  assertStringIncludes((error.cause as Error).message, "not three");
  await assertRejects(
    () => profilePipeline(Dataset.range(0), QUICKLY),
    LeatError,
    "gives no elements",
  );
});

Deno.test("undisturbed: the share of other programs is subtracted from computing, not from waiting", () => {
  const from = (wallMs: number, cpuMs: number, contention: number, fastestMs = 0) =>
    undisturbed({ wallMs, cpuMs, fastestMs }, contention);
  assertEquals(from(30, 10, 3), 10, "computed for 10 ms, three times slower than alone");
  assertEquals(from(30, 10, 1), 30, "the rest was waiting");
  assertEquals(from(100, 0, 3), 100, "all of it was");
  assertEquals(from(10, 40, 1), 10, "on several threads at once");
  assertEquals(from(30, 10, 3, 25), 25, "no batch was faster");
});

Deno.test("percentile: the value that a share of the values does not exceed", () => {
  assertEquals([0, 0.5, 0.9, 1].map((share) => percentile([5, 1, 4, 2, 3], share)), [1, 3, 5, 5]);
  assertEquals(percentile([], 0.5), NaN);
});

Deno.test("sweepClusters: finds the fewest workers that suffice, and their cost against colocated", async () => {
  const { runs, recommended, colocated, cheapest, isMet } = await sweepClusters(PROFILE, MACHINES);
  // Five produce as many batches as are consumed; the waits between them may need one more.
  assert(isMet && recommended.workers >= 5 && recommended.workers <= 6, `${recommended.workers}`);
  assertEquals(runs.slice(0, 3).map(({ workers }) => workers), [1, 2, 4]);
  assert(runs.every(({ stall }) => stall.low <= stall.expected && stall.expected <= stall.high));
  // The trainer's thread produces ten batches a second, and encodes none.
  assert(Math.abs(colocated.stall.expected - (1 - 20 / 99)) < 1e-9, `${colocated.stall.expected}`);
  assert(colocated.dollars > 4 * recommended.dollars, "a trainer that waits is paid as well");
  assert(cheapest.dollars <= 1.01 * Math.min(...runs.map(({ dollars }) => dollars)));
  const limits = await limitsOf(PROFILE, MACHINES, recommended.workers);
  assertEquals(nextLimit(limits).part, "accelerators");
});

Deno.test("sweepClusters: no workers for a pipeline that keeps up, one worker for one without prefetching", async () => {
  const fast = { ...PROFILE, batchMs: 10, batchLowMs: 9, batchHighMs: 11, cpuMs: 9 };
  assertEquals((await sweepClusters(fast, MACHINES)).recommended.workers, 0);
  const apart = await sweepClusters({ ...fast, readsAhead: false }, MACHINES);
  assertEquals(apart.recommended.workers, 1);
});

Deno.test("sweepClusters: stops when more workers gain nothing, and names the limit", async () => {
  const slowCard = { ...MACHINES, networkBytesPerSecond: 20e6 };
  const { isMet, recommended, runs } = await sweepClusters(PROFILE, slowCard);
  assert(!isMet && runs.at(-1)!.workers <= 8, `${runs.at(-1)!.workers} workers looked at`);
  assert(recommended.workers >= 2 && recommended.workers <= 4, `${recommended.workers}`);
  const [least] = await limitsOf(PROFILE, slowCard, 4);
  assertEquals([least!.part, least!.batchesPerSecond], ["trainer network", 20]);
  const large = await limitsOf({ ...PROFILE, decodeMs: 20 }, MACHINES, 8);
  assertEquals([nextLimit(large).part, nextLimit(large).batchesPerSecond], ["ingest", 25]);
});

Deno.test("sweepClusters: names the network's options if no batch arrives, and values that suffice", async () => {
  const networks: [mbps: number, roundTripMs: number][] = [[0.1, 1.2], [10_000, 60_000], [
    0.1,
    60_000,
  ]];
  for (const [mbps, roundTripMs] of networks) {
    const machines = { ...MACHINES, roundTripMs, networkBytesPerSecond: mbps * 1e6 / 8 };
    const error = await assertRejects(() => sweepClusters(PROFILE, machines), LeatError);
    assertEquals(error.code, "failed_precondition");
    for (
      const part of [
        ...[`--network-mbps ${mbps} a batch of 1.00 MB`, `--round-trip-ms ${roundTripMs} there`],
        "needs 398 Mbit/s: give a faster card or a shorter round trip",
      ]
    ) assertStringIncludes(error.message, part);
  }
});

Deno.test("sweepClusters: simulates a step of an hour with few events, and one of a minute unchanged", async () => {
  const rateAt = async (stepMs: number) => {
    const { runs } = await sweepClusters(PROFILE, { ...MACHINES, stepMs, workersMax: 1 });
    return runs[0]!.batchesPerSecond.expected * stepMs / 1_000;
  };
  const counted: number[] = [];
  const { run } = SimCluster.prototype;
  SimCluster.prototype.run = async function (this: SimCluster, ...args) {
    await run.apply(this, args);
    counted.push(this.scheduler.steps);
  };
  try {
    for (const stepMs of [30_000, 3_600_000]) {
      const took = await rateAt(stepMs);
      assert(Math.abs(took - 1) < 0.03, `${took} batches a step`);
    }
  } finally {
    SimCluster.prototype.run = run;
  }
  assert(Math.max(...counted) < 100_000, `${Math.max(...counted)} events`);
});

Deno.test("sweepClusters: a worker waits for each split that its batches need", async () => {
  const few = (await sweepClusters(PROFILE, { ...MACHINES, workersMax: 1 })).runs[0]!;
  const many = { ...PROFILE, splitsPerBatch: 100, splitMs: 0.5 };
  const slower = (await sweepClusters(many, { ...MACHINES, workersMax: 1 })).runs[0]!;
  assert(slower.batchesPerSecond.expected < 0.6 * few.batchesPerSecond.expected);
  // 99 round trips: as long as the batch itself.
  const near = (await sweepClusters(many, { ...MACHINES, workersMax: 1, roundTripMs: 0 })).runs[0]!;
  const longerMs = 1_000 / slower.batchesPerSecond.expected -
    1_000 / near.batchesPerSecond.expected;
  assert(longerMs > 80 && longerMs < 160, `${longerMs} ms`);
  const slow = { ...many, splitMs: 2 };
  const slowest = (await sweepClusters(slow, { ...MACHINES, workersMax: 1, roundTripMs: 0 }))
    .runs[0]!;
  assert(slowest.batchesPerSecond.expected < 0.7 * near.batchesPerSecond.expected);
});

Deno.test("verify: real workers of a pipeline that waits are no faster than the model", async () => {
  const waitMs = 40;
  const profile = {
    ...PROFILE,
    ...{ batchMs: waitMs, batchLowMs: waitMs, batchHighMs: waitMs, variation: 0 },
    ...{ cpuMs: 1, threadMs: 1, computingShare: 0.02, batchBytes: 100, readsAhead: false },
  };
  const dataset = waiting(1_000, waitMs);
  const options = { workers: 2, seconds: 0.5 };
  const verified = await verify(dataset, profile, { ...MACHINES, stepMs: 2 }, options);
  const { workers, modelledBatchesPerSecond: modelled, measuredBatchesPerSecond } = verified;
  assertEquals(workers, 2);
  const most = 2 * 1_000 / waitMs;
  assert(modelled > 0.8 * most && modelled <= 1.1 * most, `${modelled} batches a second`);
  // How much slower they are depends on how busy the machine is.
  assert(measuredBatchesPerSecond > 0 && measuredBatchesPerSecond < 2 * most);
});

Deno.test("verify: an Accelerator runs the steps, since timers are late for short ones", async () => {
  const accelerator = new Accelerator({
    now: () => 0,
    sleep: () => new Promise((resolve) => setTimeout(resolve, 0)),
  });
  const machines = { ...MACHINES, stepMs: 0.25 };
  await verify(Dataset.range(8), PROFILE, machines, { workers: 1, seconds: 0.01, accelerator });
  assert(accelerator.busyMs > 0);
});

Deno.test("verifyUpTo: says why a pipeline that DYNAMIC refuses cannot be run, instead of failing", async () => {
  const undivided = Dataset.fromGenerator(function* () {
    yield* [1, 2, 3];
  });
  const tried: number[] = [];
  const { verified, whyUnverified = "" } = await verifyUpTo(undivided, PROFILE, MACHINES, {
    ...{ workersMax: 2, seconds: 0.1 },
    onRun: (workers) => tried.push(workers),
  });
  assertEquals([verified, tried], [[], [1]]);
  assertStringIncludes(whyUnverified, "fromGenerator");
});

Deno.test("neither profileModule nor verify gives functions of others a permission of this program", async () => {
  const code = `
    const write = (x, { made }) => {
      try {
        globalThis.Deno.writeTextFileSync(made, "");
      } catch {
        // It is denied.
      }
      return x;
    };
    const captures = { made: import.meta.url.replace("file://", "") + ".made" };
    const others = Dataset.range(1_000).map(write, { captures }).batch(4);
    export default Dataset.deserialize(others.serialize());`;
  await withModule(code, async (path) => {
    const { dataset } = await profileModule(path, QUICKLY);
    await verify(dataset, PROFILE, MACHINES, { workers: 1, seconds: 0.1 });
    assertEquals(await namesIn(dirname(path)), [basename(path)]);
  });
});

Deno.test("planText and renderPlan: measurements, a table, plots, and a recommendation", async () => {
  const profile = { ...PROFILE, contention: 2, batchHighMs: 150 };
  const sweep = await sweepClusters(profile, MACHINES);
  const plan: Plan = {
    ...{ startedAt: "2030-01-02T03:04:05Z", commandLine: "deno task plan <x>", host: "this host" },
    ...{ module: "x.ts", measured: profile, assumed: MACHINES },
    modelled: { ...sweep, limits: await limitsOf(PROFILE, MACHINES, 5) },
    verified: [{
      ...{ workers: 1, measuredBatchesPerSecond: 8, modelledBatchesPerSecond: 10 },
      ...{ measuredCpuMs: 101.5, profiledCpuMs: 95 },
    }],
  };
  const text = planText(plan);
  for (
    const part of [
      "95.0 % of it computing",
      "CAUTION: other programs kept this host busy",
      "colocated",
      `Best: ${sweep.recommended.workers} workers.`,
      // The eight that were simulated before fewer were found to suffice.
      "Sufficient in slow stretches as well: 8 workers",
      "Next bottleneck, if workers are added: the accelerators themselves",
      "map (operator 0) takes 80 %",
      "1.25",
      "101.5",
      "◇ modelled",
    ]
  ) assertStringIncludes(text, part);
  const unverified = { ...plan, whyUnverified: "it is refused" };
  for (const shown of [planText(unverified), renderPlan(unverified)]) {
    assertStringIncludes(shown, "NOT VERIFIED with 2 real workers: it is refused");
  }
  const page = renderPlan(plan);
  assertEquals(page.match(/<svg [^>]*role="img"/g)?.length, 3);
  for (const part of ["Throughput", "Time accelerators wait", "deno task plan &lt;x&gt;"]) {
    assertStringIncludes(page, part);
  }
  const [, json = ""] = /id="results">(.*?)<\/script>/s.exec(page) ?? [];
  assertEquals(JSON.parse(json).modelled.recommended.workers, sweep.recommended.workers);
});

Deno.test("profileModule abandons a pipeline without a batch for too long, with advice", async () => {
  const stuck: [code: string, ...parts: string[]][] = [
    [
      "export default Dataset.range(1000).repeat().filter(() => false);",
      "No batch of",
      "Check that no filter drops everything",
    ],
    // A blocked thread cannot be ended: it ends by itself, long after it was abandoned.
    [
      "export default Dataset.range(3).map(() => { " +
      "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10_000); return 0; });",
      "No batch of",
    ],
    ["export default Dataset.range(3).map(() => new Promise(() => {}));", "No batch of"],
  ];
  const refused = (timeLimits: Partial<TimeLimits>) => async ([code, ...parts]: string[]) => {
    await withModule(code!, async (path) => {
      const profiled = () => profileModule(path, { ...QUICKLY, timeLimits });
      const error = await assertRejects(profiled, LeatError);
      assertEquals(error.code, "deadline_exceeded", error.message);
      for (const part of [...parts, path, "within 0.5 s", "raise --seconds"]) {
        assertStringIncludes(error.message, part);
      }
    });
  };
  await Promise.all(stuck.map(refused({ batchMs: 500 })));
  const never = "export default () => new Promise(() => {});";
  await refused({ loadingMs: 500 })([never, "was not loaded within"]);
  assertEquals([timeLimitMs(0.1), timeLimitMs(5), timeLimitMs(60)], [120_000, 120_000, 1_200_000]);
});

Deno.test("fastestMs: batches that arrive in groups share their wait, and a slow stretch is left out", async () => {
  let nowMs = 0;
  let batch = 0;
  const next = () => {
    const isFirstOfFour = batch % 4 === 0;
    const isSlow = batch < 32;
    batch++;
    nowMs += isFirstOfFour ? (isSlow ? 4_000 : 40) : 0;
    return Promise.resolve();
  };
  assertEquals(await fastestMs(next, () => nowMs), 10);
});

Deno.test("withGrantHint names the flag for a denied cause, and ends at an error that is its own cause", () => {
  const denied = new Deno.errors.NotCapable("run again with the --allow-env flag");
  const error = new LeatError("failed_precondition", "it failed", { cause: denied });
  assertStringIncludes(withGrantHint(error).message, "-P=plan --allow-env cli/plan.ts");
  const circular = new LeatError("unknown", "it failed", { cause: circularError("boom") });
  assertEquals(withGrantHint(circular), circular);
});
