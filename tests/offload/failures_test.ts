/** What fails while a training is measured or runs: every element once all the same, or a clear error. */
import { Dataset, fit, offloadProgress, planOffload, type Tensor } from "../../mod.ts";
import { offloadDependencies } from "../../offload/dependencies.ts";
import { keysOf } from "../../offload/metric_store.ts";
import { decide } from "../../offload/decide.ts";
import { OffloadPlan } from "../../offload/plan.ts";
import { assert, assertEquals, assertRejects } from "../assert.ts";
import { type Outcome, outcomesOf, readOutcomes } from "../data/lib/outcomes.ts";
import { TempFolder } from "../lib/temp_folder.ts";
import { until } from "../lib/until.ts";
import { testInline } from "../service/lib/carriers.ts";
import { hurry, returned } from "../service/lib/fixture_slow.ts";
import { slowly } from "../service/lib/slowly.ts";
import { LossHost, LOST_AFTER_MS } from "./lib/loss_host.ts";

const count = (length: number) => Array.from({ length }, (_, i) => i);

/** The numbers in batches, ascending. */
function numbersIn(outcomes: readonly Outcome[]): number[] {
  return outcomes.flatMap((at) => [...(at as { element: { data: Iterable<number> } }).element.data])
    .sort((a, b) => a - b);
}

function keysFor(dataset: Dataset<unknown>) {
  const localResources = offloadDependencies().localResources();
  const names = { model: "m", localResources, remoteResources: "r" };
  return keysOf({ pipeline: dataset.node, ...names, deterministic: false, compression: null })!;
}

testInline(
  "fit trains on each element once when the service is lost while it is measured",
  async (start) => {
    using host = new LossHost();
    await using service = await start({ workers: 1 });
    const dataset = Dataset.range(400).map(slowly).batch(5) as Dataset<Tensor>;
    const seen: number[] = [];
    const trained = fit({
      ...{ dataset, service, timeoutMs: LOST_AFTER_MS, profileSteps: 10, state: { isCopy: false } },
      cloneState: () => ({ isCopy: true }),
      trainStep: (batch, { isCopy }) => {
        if (!isCopy) seen.push(...(batch.data as Float64Array));
      },
    });
    await until(async () => (await service.describe()).jobs.length > 0);
    await service.stopWorker(0);
    host.lose();
    using _ = hurry();
    const { plan, steps } = await trained;
    assertEquals([plan!.candidate, steps], [null, 80]);
    assertEquals(seen.sort((a, b) => a - b), count(400));
    await service.close();
    await returned();
  },
);

for (const adapt of [false, true]) {
  testInline(
    `fit trains on each element once when the service is lost, adapt: ${adapt}`,
    async (start) => {
      using host = new LossHost();
      const service = await start({ workers: 1 });
      const metrics = {
        ...{ Gthp: 1e9, Lthp: 1e6, Pcycle: 10 },
        candidates: ["p'3", "p'2"].map((name) => ({ name, Rthp: 2e6, Ocycle: 1 })),
      };
      const plan = new OffloadPlan({
        ...{ decision: decide(metrics), metrics, refused: [], source: "measured", planningMs: 0 },
      });
      const seen: number[] = [];
      const { offload } = await fit({
        ...{ service, offload: plan, adapt, epochs: 2, timeoutMs: LOST_AFTER_MS, state: null },
        dataset: Dataset.range(8_000).shuffle(10).map((x) => x).batch(5) as Dataset<Tensor>,
        trainStep: async (batch) => {
          seen.push(...(batch.data as Float64Array));
          if (seen.length !== 150) return;
          await service[Symbol.asyncDispose]();
          host.lose();
        },
      });
      for (const epoch of [seen.slice(0, 8_000), seen.slice(8_000)]) {
        assertEquals(epoch.sort((a, b) => a - b), count(8_000));
      }
      assert(offload!.fallbacks > 0 && offload!.remote.elements > 0);
    },
  );
}

testInline(
  "offload keeps pairs of two sources together when the service is lost",
  async (start) => {
    for (const candidate of ["p'2/0", "p'2/1"]) {
      const service = await start({ workers: 2 });
      const [left, right] = [2, 3].map((factor) =>
        Dataset.range(6_000).map((x, { factor }) => x * factor, { captures: { factor } })
      );
      const zipped = Dataset.zip([left!, right!]).batch(7);
      const dataset = zipped.offload({ service, plan: { candidate, ratio: 0.5 }, timeoutMs: 200 });
      await using iterator = dataset.iterator();
      const before = await readOutcomes(iterator, 12);
      await service[Symbol.asyncDispose]();
      const found = [...before, ...await outcomesOf(iterator)];
      assertEquals(found, await outcomesOf(zipped.iterator()));
      assert(offloadProgress(dataset).fallbacks > 0);
    }
  },
);

testInline(
  "offload fills a cache whole, once, when the service is lost meanwhile",
  async (start) => {
    using host = new LossHost();
    const service = await start({ workers: 1 });
    const dataset = Dataset.range(200).map((x) => x).cache().shuffle(10).batch(10)
      .offload({ service, plan: { candidate: "p'2", ratio: 0.5 }, timeoutMs: LOST_AFTER_MS });
    await using iterator = dataset.iterator();
    const before = await readOutcomes(iterator, 5);
    await service[Symbol.asyncDispose]();
    host.lose();
    assertEquals(numbersIn([...before, ...await outcomesOf(iterator)]), count(200));
    const { local, remote, fallbacks } = offloadProgress(dataset);
    assertEquals(fallbacks, 1);
    assert(remote.elements > 0);
    assertEquals(numbersIn(await outcomesOf(dataset.iterator())), count(200));
    const after = offloadProgress(dataset);
    assertEquals([after.local, after.remote], [local, remote]);
  },
);

testInline("offload resumes between two shuffles, also without the service", async (start) => {
  const service = await start({ workers: 2 });
  for (const [at, candidate] of [[3, "p'2"], [30, "p'3"], [55, "p'2"]] as const) {
    const offloaded = () =>
      Dataset.range(400).shuffle(30).map((x) => x).batch(5).shuffle(8)
        .offload({ service, plan: { candidate, ratio: 0.5 }, timeoutMs: 200 });
    await using first = offloaded().iterator();
    const before = await readOutcomes(first, at);
    const state = await first.save();
    await first.return();
    if (at === 55) await service[Symbol.asyncDispose]();
    await using second = offloaded().iterator();
    await second.restore(state);
    assertEquals(numbersIn([...before, ...await outcomesOf(second)]), count(400), candidate);
  }
});

testInline(
  "fit ends with the error of a step on batches of workers, and frees the service",
  async (start) => {
    await using service = await start({ workers: 1 });
    const dataset = Dataset.range(2_000).map((x) => x).batch(2) as Dataset<Tensor>;
    const metrics = {
      ...{ Gthp: 1e9, Lthp: 1e6, Pcycle: 10 },
      candidates: [{ name: "p'3", Rthp: 2e6, Ocycle: 1 }],
    };
    const plan = new OffloadPlan({
      ...{ decision: decide(metrics), metrics, refused: [], source: "measured", planningMs: 0 },
    });
    let steps = 0;
    let jobs = 0;
    const trained = fit({
      ...{ dataset, service, offload: plan, adapt: false, state: null },
      trainStep: async () => {
        if (++steps < 30) return;
        jobs = (await service.describe()).jobs.length;
        throw new Error("the loss is no number");
      },
    });
    await assertRejects(() => trained, Error, "the loss is no number");
    assertEquals([steps, jobs], [30, 1]);
    await until(async () => (await service.describe()).jobs.length === 0);
  },
);

/** What a store may hold instead of each kind of metrics. */
const WRONG = {
  local: [
    ...["text", [1], null],
    ...[undefined, -1, "fast", 0].map((Gthp) => ({ Gthp, Lthp: 1e3, Pcycle: 10 })),
    ...[undefined, "fast", 0].map((Lthp) => ({ Gthp: 1e9, Lthp, Pcycle: 10 })),
    ...[undefined, -1].map((Pcycle) => ({ Gthp: 1e9, Lthp: 1e3, Pcycle })),
  ],
  remote: [
    { "p'2": 1 },
    [{ Rthp: 1e6, Ocycle: 1 }],
    [{ name: "p'2", Rthp: "fast", Ocycle: 1 }],
    [{ name: "p'3", Rthp: 1e6, Ocycle: 1 }, { name: "p'9", Rthp: 2e6, Ocycle: 1 }],
    [{ name: "p'2", Rthp: 1e6, Ocycle: 1 }, { name: "p'3", Rthp: 1e6, Ocycle: -1 }],
  ],
};

testInline(
  "planning measures again what the store holds wrong, keeps the rest, and repairs it",
  async (start) => {
    await using service = await start({ workers: 1 });
    await using folder = await TempFolder.make();
    const metricsStore = `${folder.path}/metrics.sqlite`;
    const dataset = Dataset.range(500).map((x) => x + 1).batch(10) as Dataset<Tensor>;
    using store = await offloadDependencies().openStore(metricsStore);
    const keys = keysFor(dataset);
    const right = {
      local: { Gthp: 1e9, Lthp: 1e3, Pcycle: 10 },
      remote: [{ name: "p'3", Rthp: 2e6, Ocycle: 1 }],
    };
    const options = { service, metricsStore, model: "m", remoteResources: "r", profileSteps: 3 };
    for (const kind of ["local", "remote"] as const) {
      for (const wrong of WRONG[kind]) {
        for (const at of ["local", "remote"] as const) store.set(keys[at], right[at]);
        store.set(keys[kind], wrong);
        const { source, metrics } = await planOffload(dataset, options);
        assertEquals(source, "measured");
        const { Gthp, Lthp, Pcycle, candidates } = metrics;
        const isNumber = (value: number) => typeof value === "number" && value >= 0;
        assert(Lthp > 0 && [Gthp, Lthp, Pcycle].every(isNumber), JSON.stringify(metrics));
        for (const { name, Rthp, Ocycle } of candidates) {
          assert(/^p'[23]$/.test(name) && isNumber(Rthp) && isNumber(Ocycle));
        }
        // Gthp and Lthp are compared, so both are measured together.
        if (kind === "remote") {
          assertEquals([Gthp, Lthp, candidates.length > 0], [1e9, 1e3, true]);
          assertEquals(store.get(keys.remote), candidates);
        } else {
          assert(Lthp !== 1e3);
          const { candidates: _, ...local } = metrics;
          // JSON has no Infinity.
          assertEquals(store.get(keys.local), { ...local, Gthp: null });
        }
      }
    }
    for (const at of ["local", "remote"] as const) store.set(keys[at], right[at]);
    const { source, metrics } = await planOffload(dataset, options);
    assertEquals([source, metrics], ["stored", { ...right.local, candidates: right.remote }]);
  },
);
