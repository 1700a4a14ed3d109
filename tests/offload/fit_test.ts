/** Training with offloading, against real services and stores. */
import { DatabaseSync } from "node:sqlite";
import {
  Dataset,
  DenoHost,
  fit,
  type FitOptions,
  LeatError,
  LocalCluster,
  OffloadPlan,
  planOffload,
  type PlanOffloadOptions,
  type Tensor,
} from "../../mod.ts";
import { OffloadNode, type OffloadOptions } from "../../data/operators/offload.ts";
import { decide } from "../../offload/decide.ts";
import { keysOf } from "../../offload/metric_store.ts";
import { offloadDependencies } from "../../offload/dependencies.ts";
import { plan } from "../../offload/planner.ts";
import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "../assert.ts";
import { CLOSED_PORT } from "../lib/closed_port.ts";
import { until } from "../lib/until.ts";
import { TempFolder } from "../lib/temp_folder.ts";
import { testInline } from "../service/lib/carriers.ts";
import { returned } from "../service/lib/fixture_slow.ts";
import { slowly } from "../service/lib/slowly.ts";
import { LossHost, LOST_AFTER_MS } from "./lib/loss_host.ts";

/** A plan as if remote workers were twice as fast as this host. */
function offloadingPlan(candidate: string): OffloadPlan {
  const metrics = {
    ...{ Gthp: 1e9, Lthp: 1e6, Pcycle: 10 },
    candidates: [{ name: candidate, Rthp: 2e6, Ocycle: 1 }],
  };
  const decision = decide(metrics);
  return new OffloadPlan({ decision, metrics, refused: [], source: "measured", planningMs: 0 });
}

/** Sums what it is trained on. */
interface Sum {
  sum: number;
  steps: number;
}

function summing(dataset: Dataset<Tensor>, more: Partial<FitOptions<Tensor, Sum>>) {
  const state = { sum: 0, steps: 0 };
  const trainStep = (batch: Tensor, state: Sum) => {
    for (const x of batch.data as Float64Array) state.sum += x;
    state.steps++;
  };
  const options = { dataset, state, trainStep, profileSteps: 3, ...more };
  return { state, fitted: () => fit<Tensor, Sum>(options) };
}

/** Stores for the model "m" that steps wait for data, however busy the machine is. */
async function storeStall(path: string, service: string): Promise<void> {
  const { localResources, openStore } = offloadDependencies();
  const keys = keysOf({
    ...{ pipeline: batches.node, model: "m", localResources: localResources() },
    ...{ remoteResources: JSON.stringify([service, []]), deterministic: false, compression: null },
  })!;
  using store = await openStore(path);
  store.set(keys.local, { Gthp: 1e9, Lthp: 1e6, Pcycle: 10 });
}

const batches = Dataset.range(500).map((x) => x + 1).batch(10) as Dataset<Tensor>;
const SUM = 500 * 501 / 2;

testInline("fit trains on every element once per epoch, and measures on a copy", async (start) => {
  await using service = await start({ workers: 1 });
  const { state, fitted } = summing(batches, { service, epochs: 2 });
  const { plan, steps, epoch, planningMs } = await fitted();
  assertEquals(state, { sum: 2 * SUM, steps: 100 });
  assertEquals([steps, epoch], [100, 1]);
  assert(planningMs > 0 && plan!.metrics.Lthp > 0);
  assertMatch(plan!.explain(), /offloaded|Workers run/);
});

testInline("fit does what a plan says, and reports where batches were prepared", async (start) => {
  await using service = await start({ workers: 1 });
  const told: unknown[] = [];
  const { state, fitted } = summing(batches, {
    service,
    offload: offloadingPlan("p'3"),
    onPlan: (plan) => told.push(plan.candidate),
    onProgress: ({ offload }) => told.push(offload?.ratio),
  });
  const { offload, plan } = await fitted();
  assertEquals(state, { sum: SUM, steps: 50 });
  assertEquals(offload!.remote.elements, Math.floor(50 * plan!.ratio));
  // Progress is told every second, and at the end.
  assertEquals(told[0], "p'3");
  assert(told.length > 1 && told.slice(1).every((ratio) => ratio === plan!.ratio), `${told}`);
});

Deno.test("fit trains with runners in processes of their own", async () => {
  await using service = await LocalCluster.start({
    workers: 1,
    carrier: "websocket",
    confine: true,
  });
  const { state, fitted } = summing(batches, { service, offload: offloadingPlan("p'3") });
  const { offload } = await fitted();
  assertEquals(state, { sum: SUM, steps: 50 });
  assertEquals(offload!.fallbacks, 0);
  assert(offload!.remote.elements > offload!.local.elements);
});

Deno.test("fit without a service trains here", async () => {
  const { state, fitted } = summing(batches, {});
  const { plan, offload } = await fitted();
  assertEquals([plan, offload, state.sum], [undefined, undefined, SUM]);
});

Deno.test("fit and planOffload train here when the service cannot be reached", async () => {
  // Not even a dispatcher listens there.
  const service = `ws://127.0.0.1:${CLOSED_PORT}`;
  await using folder = await TempFolder.make();
  const metricsStore = `${folder.path}/metrics.sqlite`;
  await storeStall(metricsStore, service);
  const { state, fitted } = summing(batches, { service, timeoutMs: 100, metricsStore, model: "m" });
  const { plan } = await fitted();
  assertEquals([plan!.candidate, plan!.isUnreached, state.sum], [null, true, SUM]);
  assertMatch(plan!.explain(), /p'3: the service failed while it was measured/);
  assertMatch(plan!.explain(), /p'2: not measured, because the service failed before/);
});

Deno.test("fit and planOffload name a wrong option before anything runs", async () => {
  const service = `ws://127.0.0.1:${CLOSED_PORT}`;
  const wrong: [name: string, options: Record<string, unknown>][] = [
    ["speedUpThreshold", { speedUpThreshold: "1.1" }],
    ["metricsStore", { metricsStore: 5 }],
    ["profileSteps", { profileSteps: 0 }],
    ["trainStep", { trainStep: "step" }],
  ];
  for (const [name, options] of wrong) {
    const given = { service, ...options } as PlanOffloadOptions<Tensor>;
    await assertRejects(() => planOffload(batches, given), Error, `planOffload: ${name}`);
  }
  const planning = () => planOffload(batches, undefined as never);
  const { code } = await assertRejects(planning, LeatError, "service must be");
  assertEquals(code, "invalid_argument");
  wrong.push(["onPlan", { onPlan: 5 }], ["epochs", { epochs: -1 }]);
  for (const [name, options] of wrong) {
    const { fitted } = summing(batches, { service, ...options });
    await assertRejects(fitted, Error, `fit: ${name}`);
  }
  const plan = "p'3" as unknown as OffloadPlan;
  assertThrows(() => batches.offload({ service, plan }), Error, "offload: plan must be");
});

testInline("fit measures nothing for a training that is too short", async (start) => {
  await using service = await start({ workers: 1 });
  for (const [epochs, profileSteps] of [[0, 3], [1, 13], [4, 50]] as const) {
    let calls = 0;
    const trainStep = () => void calls++;
    const { fitted } = summing(batches, {
      ...{ service, trainStep, epochs, profileSteps, speedUpThreshold: 3 },
    });
    const { plan, steps } = await fitted();
    assertEquals([calls, steps, plan!.candidate], [50 * epochs, 50 * epochs, null]);
    assertEquals(plan!.decision.speedUpThreshold, 3);
    assertMatch(plan!.explain(), /too few steps/);
  }
  const wrong = () => summing(batches, { service, profileSteps: 0, epochs: 9 }).fitted();
  await assertRejects(wrong, Error, "profileSteps");
  const misspelt = () => fit({ ...{ dataset: batches, state: 0, epoch: 3 }, trainStep: () => {} });
  await assertRejects(misspelt, Error, 'there is no option "epoch"');
});

testInline("fit frees the service when a training step throws", async (start) => {
  await using service = await start({ workers: 1 });
  let calls = 0;
  const trainStep = () => {
    if (++calls === 20) throw new Error("the loss is no number");
  };
  const { fitted } = summing(batches, { service, trainStep, offload: offloadingPlan("p'3") });
  await assertRejects(fitted, Error, "the loss is no number");
  assertEquals(calls, 20);
  await until(async () => (await service.describe()).jobs.length === 0);
});

testInline("planOffload goes on when the service is lost while it measures", async (start) => {
  using host = new LossHost();
  await using service = await start({ workers: 1 });
  const slow = Dataset.range(400).map(slowly).batch(5);
  const planning = planOffload(slow, { service, timeoutMs: LOST_AFTER_MS });
  await until(async () => (await service.describe()).jobs.length > 0);
  await service.stopWorker(0);
  host.lose();
  const plan = await planning;
  assertMatch(plan.explain(), /: the service failed while it was measured/);
  assertEquals(plan.candidate, null);
  await service.close();
  await returned();
});

testInline("fit ends with the error of a training step", async (start) => {
  await using service = await start({ workers: 1 });
  const trainStep = () => Promise.reject(new Error("no gradient"));
  await assertRejects(
    () => summing(batches, { service, trainStep }).fitted(),
    Error,
    "no gradient",
  );
  await assertRejects(
    () =>
      summing(batches, { service, cloneState: () => Promise.reject(new Error("no copy")) })
        .fitted(),
    Error,
    "cloneState",
  );
});

testInline("fit wants cloneState for state with objects of a class", async (start) => {
  await using service = await start({ workers: 1 });
  class Model {
    steps = 0;
    train() {
      this.steps++;
    }
  }
  const dataset = Dataset.range(400).batch(4);
  const model = new Model();
  const given = { dataset, service, profileSteps: 3 };
  const trainStep = (_: unknown, state: unknown) => (state as { model: Model }).model.train();
  for (const state of [model, { model }, [new Map([["model", model]])]]) {
    const error = await assertRejects(() => fit({ ...given, trainStep, state }), LeatError);
    assertEquals(error.code, "invalid_argument");
    assertMatch(error.message, /methods of class "Model".*give cloneState/);
  }
  const cloneState = () => ({ model: new Model() });
  const { steps } = await fit({ ...given, trainStep, state: { model }, cloneState });
  assertEquals([steps, model.steps], [100, 100]);
  const data = { lists: [new Float32Array(2)], at: new Date(0), bare: Object.create(null) };
  await fit({
    ...given,
    trainStep: () => {},
    state: { data, again: data, m: new Map([[1, data]]) },
  });
});

testInline(
  "planOffload reads from the store what it measured, unless something changed",
  async (start) => {
    await using service = await start({ workers: 1 });
    await using folder = await TempFolder.make();
    const metricsStore = `${folder.path}/new/metrics.sqlite`;
    const planned = (dataset = batches, model = "m", remoteResources = "one worker") =>
      planOffload(dataset, {
        ...{
          service,
          metricsStore,
          model,
          remoteResources,
          profileSteps: 3,
        },
      });
    // Without a training step Gthp is infinite, so that candidates are measured.
    const first = await planned();
    const second = await planned();
    assertEquals([first.source, second.source], ["measured", "stored"]);
    assertEquals(second.metrics, first.metrics);
    assertEquals((await planned(batches.map((x) => x))).source, "measured");
    assertEquals((await planned(batches, "another")).source, "measured");
    assertEquals((await planned(batches, "m")).source, "stored");
    const withSteps = () =>
      planOffload(batches, { service, metricsStore, profileSteps: 3, trainStep: () => {} });
    const measured = await withSteps();
    const stored = await withSteps();
    assertEquals([stored.source, stored.metrics], ["stored", measured.metrics]);
    assert(Number.isFinite(stored.metrics.Gthp));
  },
);

testInline(
  "planning reads Gthp of its own pipeline, not of another with the same model",
  async (start) => {
    await using service = await start({ workers: 1 });
    await using folder = await TempFolder.make();
    const metricsStore = `${folder.path}/metrics.sqlite`;
    const wide = Dataset.range(500).map((x) => [x, x, x, x]).batch(10);
    const planned = (dataset: Dataset<unknown>) =>
      plan({
        ...{ pipeline: dataset.node, service: { service }, host: new DenoHost() },
        ...{ stepMs: 1, profileSteps: 3, metricsStore, model: "m" },
      });
    const [first, other, again] = [
      await planned(batches),
      await planned(wide),
      await planned(batches),
    ];
    assert(other.metrics.Gthp > 3 * first.metrics.Gthp);
    assertEquals([again.source, again.metrics.Gthp], ["stored", first.metrics.Gthp]);
  },
);

/** Collects the options of the `offload` nodes that are run. */
class OffloadSpy implements Disposable {
  readonly options: OffloadOptions[] = [];
  readonly #makeIterator = OffloadNode.prototype.makeIterator;

  constructor() {
    const { options } = this;
    const makeIterator = this.#makeIterator;
    OffloadNode.prototype.makeIterator = function (context) {
      options.push(this.options);
      return makeIterator.call(this, context);
    };
  }

  [Symbol.dispose](): void {
    OffloadNode.prototype.makeIterator = this.#makeIterator;
  }
}

testInline("planning measures candidates in the order that training wants", async (start) => {
  await using service = await start({ workers: 1 });
  // Far slower than the training step, so that candidates are measured on a busy machine, too.
  const slow = batches.map(slowly);
  const ordersOf = async (use: () => Promise<unknown>) => {
    using spy = new OffloadSpy();
    await use();
    const candidates = spy.options.filter(({ plan }) => plan?.ratio === 1);
    assert(candidates.length > 0);
    return new Set(candidates.map(({ deterministic }) => deterministic));
  };
  for (const deterministic of [undefined, true]) {
    const options = {
      ...{ service, profileSteps: 3 },
      ...(deterministic === undefined ? {} : { deterministic }),
    };
    assertEquals(await ordersOf(() => planOffload(slow, options)), new Set([deterministic]));
    const fitted = () => fit({ ...options, dataset: slow, state: null, trainStep() {} });
    assertEquals(await ordersOf(fitted), new Set([deterministic]));
    const read = async () => {
      for await (const _ of slow.offload(options));
    };
    assertEquals(await ordersOf(read), new Set([deterministic]));
  }
  await service.close();
  await returned();
});

Deno.test("the metric store keeps Rthp by the order of elements and their compression, and Lthp not", () => {
  const [plain, ...others] = [
    { deterministic: false, compression: null },
    { deterministic: true, compression: null },
    { deterministic: false, compression: "gzip" },
  ].map((how) =>
    keysOf({
      ...{ pipeline: batches.node, model: "m", localResources: "l", remoteResources: "r" },
      ...how,
    })!
  );
  for (const other of others) {
    assert(plain!.remote !== other.remote);
    assertEquals(plain!.local, other.local);
  }
});

testInline("fit trains whatever state the metric store is in", async (start) => {
  await using service = await start({ workers: 1 });
  await using folder = await TempFolder.make();
  const path = (name: string) => `${folder.path}/${name}.sqlite`;
  Deno.writeTextFileSync(
    path("corrupt"),
    "no database at all, but long enough to be one".repeat(99),
  );
  using other = new DatabaseSync(path("other"));
  other.exec("CREATE TABLE metric (key TEXT); PRAGMA application_id = 1");
  for (const name of ["newer", "locked"]) {
    await summing(batches, { service, metricsStore: path(name), model: "m" }).fitted();
  }
  const newer = new DatabaseSync(path("newer"));
  newer.exec("PRAGMA user_version = 9");
  newer.close();
  using locked = new DatabaseSync(path("locked"));
  locked.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  for (const name of ["corrupt", "other", "newer", "locked"]) {
    const { state, fitted } = summing(batches, { service, metricsStore: path(name), model: "m" });
    const { plan } = await fitted();
    assertEquals([plan!.source, state.sum], ["measured", SUM]);
  }
});
