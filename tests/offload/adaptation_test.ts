/** What training learns changes what is offloaded: the candidate between epochs, the ratio at once. */
import { openIterator } from "../../data/dataset_iterator.ts";
import type { OffloadNode } from "../../data/operators/offload.ts";
import { Dataset, DenoHost, offloadProgress } from "../../mod.ts";
import { Adaptation, setAdaptation } from "../../offload/adaptation.ts";
import { CandidateControl } from "../../offload/candidate_control.ts";
import { decide } from "../../offload/decide.ts";
import { OffloadPlan } from "../../offload/plan.ts";
import { assert, assertEquals } from "../assert.ts";
import { outcomesOf, readOutcomes } from "../data/lib/outcomes.ts";
import { sorted, testInline, upTo } from "../service/lib/carriers.ts";

const ESTIMATES = new Map<string | null, number>([[null, 10], ["p'2", 30], ["p'3", 40]]);

Deno.test("CandidateControl tries what was estimated to be better, and undoes what was not", () => {
  const control = new CandidateControl(ESTIMATES, "p'3");
  assert(!control.observe(38));
  // The link has become slow.
  assert(control.observe(20));
  assertEquals(control.candidate, "p'2");
  assert(control.observe(15));
  assertEquals(control.candidate, "p'3");
  for (let epoch = 0; epoch < 9; epoch++) assert(!control.observe(20 + epoch / 10));
});

Deno.test("CandidateControl prepares all here when nothing else pays, and offloads again", () => {
  const control = new CandidateControl(ESTIMATES, "p'3");
  const reached = new Map<string | null, number>([[null, 10], ["p'2", 4], ["p'3", 5]]);
  const pass = (epochs: number) => {
    for (let i = 0; i < epochs; i++) control.observe(reached.get(control.candidate)!);
    return control.candidate;
  };
  assertEquals(pass(10), null);
  // Its own speed shows that conditions are others: what was estimated is tried again.
  reached.set(null, 6).set("p'3", 40).set("p'2", 30);
  assertEquals(pass(10), "p'3");
});

Deno.test("CandidateControl tries less and less often what does not help", () => {
  const control = new CandidateControl(new Map([[null, 10], ["p'2", 100]]), "p'2");
  let tries = 0;
  for (let epoch = 0; epoch < 400; epoch++) {
    // This host's speed changes all the time, so that what was measured is forgotten.
    const throughput = control.candidate === null ? (epoch % 2 === 0 ? 8 : 12) : 1;
    if (control.candidate !== null) tries++;
    control.observe(throughput);
  }
  assert(tries > 2 && tries < 20, `${tries}`);
});

function planOf(metrics: OffloadPlan["metrics"], planningMs = 0): OffloadPlan {
  const decision = decide(metrics);
  return new OffloadPlan({ decision, metrics, refused: [], source: "measured", planningMs });
}

/** Training does not wait. */
const NO_STALL = { Gthp: 100, Lthp: 100, Pcycle: 10, candidates: [] };

Deno.test("Adaptation changes the candidate after an epoch, and keeps the ratio of each", () => {
  const plan = planOf({
    ...{ Gthp: 1_000, Lthp: 100, Pcycle: 10 },
    candidates: [{ name: "p'2", Rthp: 300, Ocycle: 1 }, { name: "p'3", Rthp: 500, Ocycle: 1 }],
  });
  const adaptation = new Adaptation(plan);
  const { candidate, ratio } = adaptation.choice;
  assertEquals(candidate, "p'3");
  const epoch = (bytes: number, batches = 100) =>
    adaptation.ended({ batches, bytes, elapsedMs: 1_000, waitMs: 0 });
  epoch(1, 24);
  assertEquals(adaptation.choice, { candidate, ratio });
  epoch(200);
  assertEquals(adaptation.choice, { candidate: "p'2", ratio: 0.5 });
  epoch(150);
  assertEquals(adaptation.choice, { candidate, ratio });
});

Deno.test("Adaptation wants another plan when training comes to wait, and not too often", () => {
  const adaptation = new Adaptation(planOf(NO_STALL, 60));
  const epoch = (waitMs: number, batches = 100) => {
    adaptation.ended({ batches, bytes: 1, elapsedMs: 1_000, waitMs });
    return adaptation.planAgain;
  };
  // Planning took 60 ms, which is 3 % of two epochs.
  assertEquals(epoch(500), undefined);
  assertEquals(epoch(50), undefined, "less than a tenth of its time");
  assertEquals(epoch(500, 10), undefined, "an epoch too short");
  assertEquals(epoch(500), { stepMs: 5, speedUpThreshold: 1.1 });
  assertEquals(epoch(0), undefined);
  // What was measured once is tried by the controls.
  const candidates = [{ name: "p'2", Rthp: 1, Ocycle: 10 }];
  const other = new Adaptation(planOf({ ...NO_STALL, Gthp: 200, candidates }));
  other.ended({ batches: 100, bytes: 100, elapsedMs: 1_000, waitMs: 500 });
  assertEquals([other.choice.candidate, other.planAgain], [null, undefined]);
});

/** Training waits, and no candidate was measured. */
function unreached(planningMs: number): OffloadPlan {
  const metrics = { Gthp: 1e9, Lthp: 1, Pcycle: 10, candidates: [] };
  const [decision, isUnreached] = [decide(metrics), true];
  const parts = { decision, metrics, refused: [], source: "measured", isUnreached } as const;
  return new OffloadPlan({ ...parts, planningMs });
}

/** A host whose time passes only where the test lets it. */
class SteppedHost extends DenoHost {
  time = 0;
  /** Whether everything takes time, so that training waits for data. */
  isSlow = false;

  onWarn: (message: string) => void = (message) => super.warn(message);

  override nowMs(): number {
    if (this.isSlow) this.time += 3;
    return this.time;
  }

  override warn(message: string): void {
    this.onWarn(message);
  }
}

testInline("offload leaves the service when training does not wait, and returns", async (start) => {
  await using service = await start({ workers: 1 });
  const host = new SteppedHost();
  const elements = 10_000;
  const offloaded = (adapt = true) =>
    Dataset.range(elements).map((x) => x).offload({
      ...{ service, plan: { candidate: "p'2", ratio: 0.5 }, adapt },
    });
  const dataset = offloaded();
  await using iterator = openIterator(dataset.node, { host });
  const given: unknown[] = [];
  const read = async (isThere: () => boolean) => {
    while (!isThere() && given.length < elements) {
      given.push(...await readOutcomes(iterator, 1));
      if (!host.isSlow) host.time += 10;
    }
  };
  const progress = () => offloadProgress(dataset);
  await read(() => progress().corrections > 0 && progress().ratio === 0);
  assertEquals(progress().state, "local");
  const saved = await iterator.save();
  const before = progress().remote.elements;
  assert(before > 0 && given.length < elements / 2);

  // A restored iterator begins with the ratio of then, and continues if it keeps that ratio, too.
  for (const adapt of [true, false]) {
    const other = offloaded(adapt);
    await using restored = openIterator(other.node, { host });
    await restored.restore(saved);
    const rest = await readOutcomes(restored, adapt ? 10 : elements);
    assertEquals(offloadProgress(other).ratio, 0);
    assertEquals(offloadProgress(other).remote.elements, 0);
    if (!adapt) assertEquals(sorted(numbersIn([...given, ...rest])), upTo(elements));
  }

  host.isSlow = true;
  await read(() => progress().remote.elements > before);
  assertEquals(progress().state, "local and remote");
  given.push(...await outcomesOf(iterator));
  assertEquals(sorted(numbersIn(given)), upTo(elements));
});

function numbersIn(outcomes: readonly unknown[]): number[] {
  return outcomes.map((at) => (at as { element: number }).element);
}

testInline("offload with adapt continues an epoch that began without it", async (start) => {
  await using service = await start({ workers: 1 });
  const offloaded = (adapt: boolean) =>
    Dataset.range(200).map((x) => x)
      .offload({ service, plan: { candidate: "p'2", ratio: 0 }, adapt });
  await using first = offloaded(false).iterator();
  const before = await readOutcomes(first, 70);
  const saved = await first.save();
  const dataset = offloaded(true);
  await using second = dataset.iterator();
  await second.restore(saved);
  assertEquals(numbersIn([...before, ...await outcomesOf(second)]), upTo(200));
  assertEquals(offloadProgress(dataset).local.elements, 130);
});

testInline("offload makes a plan in the epoch after a restored one without", async (start) => {
  await using service = await start({ workers: 1 });
  const host = new SteppedHost();
  host.isSlow = true;
  const numbers = Dataset.range(60).map((x) => x + 1);
  const plan = { candidate: null, ratio: 0 };
  await using first = openIterator(numbers.offload({ service, plan }).node, { host });
  const before = await readOutcomes(first, 20);
  const saved = await first.save();
  const dataset = numbers.offload({ service, profileSteps: 3 });
  await using second = openIterator(dataset.node, { host });
  await second.restore(saved);
  assertEquals(numbersIn([...before, ...await outcomesOf(second)]), upTo(61).slice(1));
  const progress = offloadProgress(dataset);
  assertEquals([progress.plan, progress.candidate], [undefined, null]);
  await using third = openIterator(dataset.node, { host });
  await readOutcomes(third, 1);
  assert(offloadProgress(dataset).plan !== undefined);
});

testInline(
  "offload plans again when training that did not wait has come to wait",
  async (start) => {
    await using service = await start({ workers: 1 });
    const host = new SteppedHost();
    const failing = new Float64Array(1);
    const dataset = Dataset.range(100).map((x, { failing }) => {
      if (failing[0] === 1) throw new Error("no data");
      return x + 1;
    }, { captures: { failing } }).offload({ service, profileSteps: 3 });
    setAdaptation(dataset.node as OffloadNode, new Adaptation(planOf(NO_STALL)));
    const epoch = async () => {
      await using iterator = openIterator(dataset.node, { host });
      const given: unknown[] = [];
      for (let i = 0; i < 100; i++) {
        given.push(...await readOutcomes(iterator, 1));
        host.time += 10;
      }
      await outcomesOf(iterator);
      const numbers = given.map((at) => (at as { element: number }).element).sort((a, b) => a - b);
      assertEquals(numbers, Array.from({ length: 100 }, (_, i) => i + 1));
      return offloadProgress(dataset);
    };
    await epoch();
    const { plan, candidate, local } = await epoch();
    assertEquals([plan, candidate, local.elements], [undefined, null, 200]);
    host.isSlow = true;
    await epoch();
    // An attempt that fails does not end adaptation.
    failing[0] = 1;
    host.onWarn = () => failing[0] = 0;
    assertEquals((await epoch()).plan, undefined);
    assertEquals(failing[0], 0);
    assert((await epoch()).plan !== undefined);
  },
);

testInline(
  "offload plans again after a pause when the service could not be reached",
  async (start) => {
    await using service = await start({ workers: 1 });
    const host = new SteppedHost();
    const dataset = Dataset.range(100).map((x) => x).offload({
      ...{ service, plan: unreached(10_000), adapt: true, profileSteps: 3 },
    });
    const planOfEpoch = async () => {
      await using iterator = openIterator(dataset.node, { host });
      host.isSlow = true;
      await outcomesOf(iterator);
      host.isSlow = false;
      return offloadProgress(dataset).plan;
    };
    await planOfEpoch();
    // The pause is four times as long as planning took.
    host.time = 35_000;
    assertEquals(await planOfEpoch(), undefined);
    host.time = 45_000;
    assertEquals((await planOfEpoch())?.isUnreached, false);
  },
);
