/**
 * The world changes while training runs: what is offloaded follows, and comes back from what did not
 * help. Time passes only where the test lets it.
 */
import { openIterator } from "../../data/dataset_iterator.ts";
import type { OffloadNode } from "../../data/operators/offload.ts";
import { Dataset, DenoHost, offloadProgress } from "../../mod.ts";
import { Adaptation, setAdaptation } from "../../offload/adaptation.ts";
import { decide, type OffloadMetrics } from "../../offload/decide.ts";
import { OffloadPlan } from "../../offload/plan.ts";
import { assert, assertAlmostEquals, assertEquals } from "../assert.ts";
import { readOutcomes } from "../data/lib/outcomes.ts";
import { testInline } from "../service/lib/carriers.ts";

/** The size of a batch of two numbers. */
const BATCH_BYTES = 16;
const bytesPerSecond = (stepMs: number) => 1_000 * BATCH_BYTES / stepMs;

function planOf(metrics: OffloadMetrics): OffloadPlan {
  const decision = decide(metrics);
  return new OffloadPlan({
    ...{ decision, metrics, refused: [], source: "measured", planningMs: 0 },
  });
}

/** A host with a clock of the test's. */
class VirtualHost extends DenoHost {
  now: () => number = () => 0;
  sleptMs = 0;

  override nowMs(): number {
    return this.now() + this.sleptMs;
  }

  override sleep(ms: number, signal?: AbortSignal): Promise<void> {
    // Time limits of the service are none of training.
    if (ms >= 1_000) return super.sleep(ms, signal);
    this.sleptMs += ms;
    return Promise.resolve();
  }
}

for (const helps of [true, false]) {
  testInline(
    `offload changes the candidate of a long epoch, where that helps: ${helps}`,
    async (start) => {
      await using service = await start({ workers: 1 });
      const plan = planOf({
        ...{ Gthp: bytesPerSecond(1), Lthp: bytesPerSecond(50), Pcycle: 10 },
        // Estimates: 25 and 10 ms a step.
        candidates: [
          { name: "p'2", Rthp: bytesPerSecond(50), Ocycle: 0 },
          { name: "p'3", Rthp: bytesPerSecond(12.5), Ocycle: 0 },
        ],
      });
      assertEquals(plan.candidate, "p'3");
      const count = 4_000;
      const dataset = Dataset.range(count).map((x) => x).batch(2)
        .offload({ service, plan, adapt: true });
      setAdaptation(
        dataset.node as OffloadNode,
        new Adaptation(plan, undefined, { batches: 50, ms: 100 }),
      );
      const host = new VirtualHost();
      let nowMs = 0;
      host.now = () => nowMs;
      await using iterator = openIterator(dataset.node, { host });
      const stepMs: Record<string, number> = { "p'3": 10, "p'2": helps ? 20 : 60, null: 50 };
      const given: number[] = [];
      const steps = new Map<string, number>();
      const changes: string[] = [];
      for (let step = 0;; step++) {
        const [outcome] = await readOutcomes(iterator, 1);
        if (outcome === undefined) break;
        given.push(...(outcome as { element: { data: Iterable<number> } }).element.data);
        // The link becomes slow.
        if (step === 400) stepMs["p'3"] = 40;
        const candidate = `${offloadProgress(dataset).candidate}`;
        if (changes.at(-1) !== candidate) changes.push(candidate);
        if (step >= 1_000) steps.set(candidate, (steps.get(candidate) ?? 0) + 1);
        nowMs += stepMs[candidate]!;
      }
      assertEquals(given.sort((a, b) => a - b), Array.from({ length: count }, (_, i) => i));
      assertEquals(changes.slice(0, 2), ["p'3", "p'2"]);
      if (helps) assertEquals(changes.length, 2);
      else {
        // Undone, and tried again more and more seldom.
        assertEquals(changes[2], "p'3");
        assert(steps.get("p'3")! > 2 * (1_000 - steps.get("p'3")!), `${[...steps]}`);
      }
    },
  );
}

testInline(
  "offload plans again when training has come to wait, and takes back what did not help",
  async (start) => {
    await using service = await start({ workers: 1 });
    // Only what is prepared here counts in this array: workers have copies.
    const prepared = new Float64Array(1);
    const trainMs = 4;
    const host = new VirtualHost();
    let trainedMs = 0;
    let localMs = 0;
    let countedBefore = 0;
    host.now = () => {
      trainedMs += localMs * (prepared[0]! - countedBefore);
      countedBefore = prepared[0]!;
      return trainedMs;
    };
    const noStall = { Gthp: 100, Lthp: 100, Pcycle: 10, candidates: [] };
    const dataset = Dataset.range(200).map((x, { prepared }) => {
      prepared[0]!++;
      return x;
    }, { captures: { prepared } }).batch(2)
      .offload({ service, plan: planOf(noStall), adapt: true, profileSteps: 10 });
    let remoteMs = 0;
    /** The time of a step of an epoch. */
    const epoch = async () => {
      await using iterator = openIterator(dataset.node, { host });
      let remote = offloadProgress(dataset).remote.elements;
      const given: number[] = [];
      let fromMs = NaN;
      for (;;) {
        const outcomes = await readOutcomes(iterator, 1);
        if (Number.isNaN(fromMs)) fromMs = host.nowMs();
        if (outcomes.length === 0) break;
        given.push(...(outcomes[0] as { element: { data: Iterable<number> } }).element.data);
        trainedMs += trainMs;
        const { elements } = offloadProgress(dataset).remote;
        trainedMs += remoteMs * (elements - remote);
        remote = elements;
      }
      assertEquals(given.sort((a, b) => a - b), Array.from({ length: 200 }, (_, i) => i));
      return (host.nowMs() - fromMs) / 100;
    };
    await epoch();
    assertEquals(offloadProgress(dataset).plan, undefined);
    // Preparing becomes slow: 10 ms a batch.
    localMs = 5;
    assertAlmostEquals(await epoch(), trainMs + 10, 0.2);
    assertEquals(offloadProgress(dataset).candidate, null);

    const stepMs = await epoch();
    const { plan, candidate } = offloadProgress(dataset);
    assertAlmostEquals(plan!.metrics.Gthp, bytesPerSecond(trainMs), 50);
    assertAlmostEquals(plan!.metrics.Lthp, bytesPerSecond(trainMs + 10), 100);
    assert(candidate !== null && plan!.ratio > 0.7, `${plan}`);
    assert(stepMs < trainMs + 5, `${stepMs}`);

    // What comes from workers costs more than it saves: after some epochs, in which candidates and
    // ratios are tried, all but a little is prepared here.
    remoteMs = 40;
    let reachedMs = Infinity;
    for (let i = 0; i < 8 && reachedMs > trainMs + 11; i++) reachedMs = await epoch();
    assert(reachedMs <= trainMs + 11, `${reachedMs}`);
  },
);
