/** How long planning may take, and what it tells meanwhile. */
import type { Host } from "../../data/host.ts";
import { plan } from "../../offload/planner.ts";
import {
  Dataset,
  DenoHost,
  fit,
  offloadProgress,
  type PlanningProgress,
  planOffload,
} from "../../mod.ts";
import { offloadDependencies } from "../../offload/dependencies.ts";
import { keysOf } from "../../offload/metric_store.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { TempFolder } from "../lib/temp_folder.ts";
import { until } from "../lib/until.ts";
import { outcomesOf } from "../data/lib/outcomes.ts";
import { testInline } from "../service/lib/carriers.ts";

const numbers = Dataset.range(400).map((x) => x + 1).batch(10);
/** No element ever comes, here or from workers. */
const stuck = Dataset.range(400).map(async (x) => {
  await new Promise(() => {});
  return x;
}).batch(10);

testInline("planning stays local when no step fits into planningTimeoutMs", async (start) => {
  await using service = await start({ workers: 1 });
  const speedUpThreshold = 3;
  const plan = await planOffload(stuck, { service, planningTimeoutMs: 40, speedUpThreshold });
  assertEquals([plan.candidate, plan.ratio, plan.decision.rule], [null, 0, "no time"]);
  // Planning again uses the same threshold.
  assertEquals(plan.decision.speedUpThreshold, speedUpThreshold);
  assertMatch(
    plan.explain(),
    /^Nothing is offloaded: planning ran out of time .*planningTimeoutMs/,
  );
  assertMatch(plan.explain(), /Planning took \d+\.\d+ s/);
});

testInline("planning decides without the candidates that it had no time for", async (start) => {
  await using service = await start({ workers: 1 });
  await using folder = await TempFolder.make();
  const metricsStore = `${folder.path}/metrics.sqlite`;
  const { localResources, openStore } = offloadDependencies();
  const keys = keysOf({
    ...{ pipeline: stuck.node, model: "m", localResources: localResources() },
    ...{ remoteResources: "r", deterministic: false, compression: null },
  })!;
  {
    using store = await openStore(metricsStore);
    store.set(keys.local, { Gthp: 1e9, Lthp: 1e3, Pcycle: 10 });
  }
  const options = { service, metricsStore, model: "m", remoteResources: "r" };
  const plan = await planOffload(stuck, { ...options, planningTimeoutMs: 90 });
  assertEquals([plan.decision.rule, plan.metrics.candidates], ["no time", []]);
  assertMatch(plan.explain(), /p'2: not measured, because planningTimeoutMs, 90 ms, left no time/);
  // The next plan measures again.
  using store = await openStore(metricsStore);
  assertEquals(store.get(keys.remote), undefined);
});

testInline("the store keeps no candidates of which one had no time", async (start) => {
  await using service = await start({ workers: 1 });
  await using folder = await TempFolder.make();
  const metricsStore = `${folder.path}/metrics.sqlite`;
  const planningTimeoutMs = 1_000_000_000;
  let isLate = false;
  const real = new DenoHost();
  // The time of the second candidate is up at once.
  const sleep: Host["sleep"] = (ms, signal) =>
    isLate && ms > planningTimeoutMs / 10 ? Promise.resolve() : real.sleep(ms, signal);
  const host = Object.assign(Object.create(real), { sleep }) as Host;
  const { metrics, refused } = await plan({
    ...{ pipeline: numbers.node, service: { service }, host, profileSteps: 3, planningTimeoutMs },
    ...{ metricsStore, model: "m", remoteResources: "r", measuresAll: true },
    onProgress: ({ candidate }) => isLate = candidate !== null,
  });
  assertEquals(metrics.candidates.map(({ name }) => name), ["p'3"]);
  assertMatch(refused.join(), /p'2: not measured, because planningTimeoutMs/);
  const { localResources, openStore } = offloadDependencies();
  using store = await openStore(metricsStore);
  const keys = keysOf({
    ...{ pipeline: numbers.node, model: "m", localResources: localResources() },
    ...{ remoteResources: "r", deterministic: false, compression: null },
  })!;
  assertEquals([store.get(keys.remote), store.get(keys.local) !== undefined], [undefined, true]);
});

testInline("the store keeps no measurement that planningTimeoutMs cut short", async (start) => {
  await using service = await start({ workers: 1 });
  await using folder = await TempFolder.make();
  const planningTimeoutMs = 1_000_000;
  const { node: pipeline } = Dataset.range(400).map((x) => x + 1);
  /** Plans, and has no more time from step 30 of the local pipeline on, or of a candidate. */
  const planned = async (late: "local" | "remote" | "never") => {
    let ms = 0;
    let isUp = false;
    const nowMs = () => isUp ? planningTimeoutMs : ms++;
    const host = Object.assign(Object.create(new DenoHost()), { nowMs }) as Host;
    const { source, metrics, refused } = await plan({
      ...{ pipeline, service: { service }, host, planningTimeoutMs, stepMs: 1 },
      ...{ metricsStore: `${folder.path}/metrics.sqlite`, model: "m" },
      onProgress: ({ candidate, step }) => {
        // Half of 50 steps warm up.
        isUp ||= step > 30 && late === (candidate === null ? "local" : "remote");
      },
    });
    return { source, metrics, refused };
  };
  const cut = await planned("local");
  const { metrics: { Lthp }, refused } = await planned("remote");
  assert(Lthp > 2 * cut.metrics.Lthp, "measured again");
  assert(!refused.join().includes("planningTimeoutMs"), "it was measured, but not completely");
  const whole = await planned("never");
  assertEquals([whole.source, whole.metrics.Lthp], ["measured", Lthp]);
  const { source, metrics } = await planned("never");
  assertEquals([source, metrics], ["stored", whole.metrics]);
});

testInline("the store keeps no measurement that read from a complete cache", async (start) => {
  await using service = await start({ workers: 1 });
  await using folder = await TempFolder.make();
  const metricsStore = `${folder.path}/metrics.sqlite`;
  const options = { service, metricsStore, model: "m", profileSteps: 3 };
  const batches = (elements: number) => Dataset.range(elements).map((x) => x + 1).batch(10);
  const again = async (dataset: () => Dataset<unknown>) => {
    await planOffload(dataset(), options);
    return (await planOffload(dataset(), options)).source;
  };
  assertEquals(await again(() => batches(40).cache()), "measured");
  assertEquals(await again(() => batches(40).cache(`${folder.path}/cache`)), "measured");
  assertEquals(await again(() => batches(40).snapshot(`${folder.path}/snapshot`)), "measured");
  assertEquals(await again(() => batches(10_000).cache()), "stored");
  assertEquals(await again(() => batches(40)), "stored");
});

testInline(
  "planning measures no candidate that only a complete cache would read",
  async (start) => {
    await using service = await start({ workers: 1 });
    await using folder = await TempFolder.make();
    const options = { service, profileSteps: 3, measuresAll: true };
    const others = Dataset.range(400).map((x) => x + 2).batch(10);
    for (const path of [undefined, `${folder.path}/cache`]) {
      const cached = numbers.cache(path);
      await outcomesOf(cached.iterator());
      const measured: unknown[] = [];
      const planned = await plan({
        ...{ ...options, pipeline: Dataset.zip([cached, others]).node, service: { service } },
        host: new DenoHost(),
        onProgress: ({ candidate, step }) => void (step === 1 && measured.push(candidate)),
      });
      assertEquals(measured, [null, "p'3/1", "p'2/1"]);
      assertMatch(
        planned.refused.join(),
        /p'3\/0: not measured, because a cache after it is complete.*p'2\/0: not measured, because/,
      );
    }
  },
);

testInline("planOffload and fit tell what is measured", async (start) => {
  await using service = await start({ workers: 1 });
  const options = { service, profileSteps: 3 };
  const told: PlanningProgress[] = [];
  await planOffload(numbers, { ...options, onProgress: (progress) => void told.push(progress) });
  const begun = told.filter(({ step }) => step === 1).map(({ candidate }) => candidate);
  // The cheapest to receive first: the others need not be measured if they cannot be better.
  assertEquals(begun.slice(0, 2), [null, "p'3"]);
  assert(told.every(({ step, steps, candidates }) => step <= steps && candidates === 2));

  const planned: unknown[] = [];
  const { planning } = await fit({
    ...{ ...options, dataset: numbers, state: null, trainStep() {} },
    onProgress: ({ steps, planning }) => {
      if (planning === undefined || planning.step === 1) planned.push([steps, planning?.candidate]);
    },
  });
  assertEquals(planned[0], [0, null]);
  assertEquals([planned.at(-1), planning], [[40, undefined], undefined]);
});

testInline("offloadProgress tells what is measured, until there is a plan", async (start) => {
  await using service = await start({ workers: 1 });
  const dataset = stuck.offload({ service, planningTimeoutMs: 600_000 });
  const iterator = dataset.iterator();
  const first = iterator.next();
  await until(() => offloadProgress(dataset).planning !== undefined);
  const { candidate, measured, step } = offloadProgress(dataset).planning!;
  assertEquals([candidate, measured, step], [null, 0, 1]);
  await iterator.return();
  assertEquals((await first).done, true);

  const other = numbers.offload({ service, profileSteps: 3 });
  await using batches = other.iterator();
  await batches.next();
  const { planning, plan } = offloadProgress(other);
  assert(planning === undefined && plan !== undefined);
});

testInline("offload without a plan gives what follows an element that fails", async (start) => {
  await using service = await start({ workers: 1 });
  const dataset = Dataset.range(40).map((x) => {
    if (x === 5) throw new Error("bad");
    return x;
  });
  const outcomes = await outcomesOf(
    dataset.offload({ service, profileSteps: 2, adapt: false }).iterator(),
  );
  const numbers = outcomes.flatMap((outcome) => "element" in outcome ? [outcome.element] : []);
  assertEquals([outcomes.length, numbers.length, numbers.includes(39)], [40, 39, true]);
  const empty = Dataset.range(0).offload({ service, profileSteps: 2 });
  assertEquals(await outcomesOf(empty.iterator()), []);
});

for (const how of [{ deterministic: true }, { adapt: false }]) {
  testInline(`offload makes one plan for all epochs with ${Deno.inspect(how)}`, async (start) => {
    await using service = await start({ workers: 1 });
    const dataset = Dataset.range(20).offload({ service, profileSteps: 2, ...how });
    const plans = new Set();
    for (let epoch = 0; epoch < 3; epoch++) {
      await outcomesOf(dataset.iterator());
      plans.add(offloadProgress(dataset).plan);
    }
    assertEquals([plans.size, plans.has(undefined)], [1, false]);
  });
}
