/** What workers run changes while an epoch runs: every element once, with the same random numbers. */
import { Dataset, type LocalCluster, offloadProgress } from "../../mod.ts";
import { Adaptation, setAdaptation } from "../../offload/adaptation.ts";
import { CandidateControl } from "../../offload/candidate_control.ts";
import { cutPointsOf, exchangeOf, withStandIns } from "../../offload/cut_points.ts";
import { assert, assertEquals } from "../assert.ts";
import { type Outcome, outcomesOf, readOutcomes } from "../data/lib/outcomes.ts";
import { sorted, testInline, testOnEach, upTo } from "../service/lib/carriers.ts";
import type { OffloadNode } from "../../data/operators/offload.ts";

/** Takes one candidate after the other. */
class Rotation extends CandidateControl {
  readonly #order: readonly (string | null)[];
  #at = 0;

  constructor(order: readonly (string | null)[]) {
    super(new Map(), order[0]!);
    this.#order = order;
  }

  override get candidate(): string | null {
    return this.#order[this.#at % this.#order.length]!;
  }

  override resume(candidate: string | null): void {
    this.#at = this.#order.indexOf(candidate);
  }

  /** How often a candidate was measured. */
  observed = 0;

  override observe(): boolean {
    this.observed++;
    this.#at++;
    return true;
  }
}

const ORDER = ["p'3", "p'2", null, "p'1", "p'2", "p'3", "p'1"];

/** Random numbers, filters and remainders below the batch, and an operator above it. */
function makeDataset() {
  return Dataset.from(Array.from({ length: 600 }, (_, i) => i)).shuffle(20)
    .map((x, { random }) => x + random.next() / 2)
    .filter((x) => Math.floor(x) % 7 !== 0)
    .batch(4)
    .map((batch) => ({ batch, sum: Math.max(...(batch.data as Float64Array)) }))
    .withOptions({ seed: 5 });
}

function offloaded(service: LocalCluster, order = ORDER, batches = 4) {
  const plan = { candidate: order[0]!, ratio: 0.5 };
  const dataset = makeDataset().offload({ service, plan, adapt: true });
  const adaptation = new Adaptation(plan, new Rotation(order), { batches, ms: 0 });
  setAdaptation(dataset.node as OffloadNode, adaptation);
  return dataset;
}

function elementsIn(outcomes: readonly Outcome[]): number[] {
  return outcomes.flatMap((at) =>
    "element" in at ? [...(at.element as { batch: { data: Iterable<number> } }).batch.data] : []
  ).sort((a, b) => a - b);
}

/** The numbers in batches of numbers. */
function numbersIn(outcomes: readonly Outcome[]): number[] {
  return outcomes.flatMap((at) =>
    "element" in at ? [...(at.element as { data: Iterable<number> }).data] : []
  );
}

/** The same elements without a change. */
async function wantedFrom(service: LocalCluster): Promise<number[]> {
  const plan = { candidate: "p'3", ratio: 0.5 };
  const dataset = makeDataset().offload({ service, plan, deterministic: true });
  return elementsIn(await outcomesOf(dataset.iterator()));
}

testOnEach(
  "offload changes the candidate within an epoch, and gives every element once",
  async (start) => {
    await using service = await start({ workers: 2 });
    const wanted = await wantedFrom(service);
    assertEquals(wanted.length, 600 - 86);
    const dataset = offloaded(service);
    await using iterator = dataset.iterator();
    const outcomes: Outcome[] = [];
    const seen = new Set<string | null>();
    for (;;) {
      const some = await readOutcomes(iterator, 1);
      if (some.length === 0) break;
      outcomes.push(...some);
      // A step, in which something comes from workers.
      await new Promise((resolve) => setTimeout(resolve, 1));
      seen.add(offloadProgress(dataset).candidate!);
    }
    assertEquals(elementsIn(outcomes), wanted);
    assertEquals(seen, new Set(ORDER));
    const { local, remote, fallbacks } = offloadProgress(dataset);
    assertEquals(fallbacks, 0);
    assert(local.elements > 0 && remote.elements > 0, `${local.elements}, ${remote.elements}`);
    // As with p'3, only the last batch is short.
    const sizes = outcomes.map((at) => elementsIn([at]).length);
    assertEquals(sizes.filter((size) => size !== 4).length, wanted.length % 4 === 0 ? 0 : 1);
  },
);

testInline(
  "offload measures no candidate whose ratio has not settled when the epoch ends",
  async (start) => {
    await using service = await start({ workers: 1 });
    // 129 batches: 45 settle, 45 are measured, and 39 come after the change.
    for (const [batches, observed] of [[45, 1], [130, 1]] as const) {
      const plan = { candidate: "p'3", ratio: 0.5 };
      const dataset = makeDataset().offload({ service, plan, adapt: true });
      const rotation = new Rotation(["p'3", "p'2"]);
      setAdaptation(
        dataset.node as OffloadNode,
        new Adaptation(plan, rotation, { batches, ms: 0 }),
      );
      assertEquals((await outcomesOf(dataset.iterator())).length, 129);
      assertEquals(rotation.observed, observed, `${batches}`);
    }
  },
);

testInline(
  "offload measures no candidate in an epoch that reads a complete cache",
  async (start) => {
    await using service = await start({ workers: 1 });
    const plan = { candidate: "p'3", ratio: 0.5 };
    const dataset = Dataset.range(200).map((x) => x).batch(2).cache()
      .offload({ service, plan, adapt: true });
    const rotation = new Rotation(["p'3", "p'2"]);
    setAdaptation(
      dataset.node as OffloadNode,
      new Adaptation(plan, rotation, { batches: 3, ms: 0 }),
    );
    let observed = 0;
    for (const epoch of [0, 1]) {
      const outcomes = await outcomesOf(dataset.iterator());
      assertEquals(sorted(numbersIn(outcomes)), upTo(200), `epoch ${epoch}`);
      if (epoch === 0) observed = rotation.observed;
    }
    assert(observed > 0);
    assertEquals(rotation.observed, observed);
  },
);

testInline("offload resumes an epoch in which the candidate has changed", async (start) => {
  await using service = await start({ workers: 1 });
  const wanted = await wantedFrom(service);
  for (const at of [3, 9, 18, 30, 60, 90]) {
    await using first = offloaded(service).iterator();
    const before = await readOutcomes(first, at);
    const state = await first.save();
    await first.return();
    // It had another plan, or no candidate at that time.
    const other = offloaded(service, at % 2 === 0 ? ["p'1", "p'3", "p'2", null] : ORDER);
    await using second = other.iterator();
    await second.restore(state);
    assertEquals(elementsIn([...before, ...await outcomesOf(second)]), wanted, `after ${at}`);
  }
});

testInline(
  "offload finishes an epoch here when the service is lost after a change",
  async (start) => {
    const service = await start({ workers: 1 });
    const wanted = await wantedFrom(service);
    const dataset = offloaded(service, ["p'3", "p'2"], 6);
    await using iterator = dataset.iterator();
    const before = await readOutcomes(iterator, 14);
    assertEquals(offloadProgress(dataset).candidate, "p'2");
    await service[Symbol.asyncDispose]();
    assertEquals(elementsIn([...before, ...await outcomesOf(iterator)]), wanted);
    // Nothing was measured of a candidate while the service was away.
    const { state, candidate } = offloadProgress(dataset);
    assertEquals([state, candidate], ["local", "p'2"]);
  },
);

testInline(
  "offload gives the error of an element once, whichever candidate prepares it",
  async (start) => {
    await using service = await start({ workers: 1 });
    const plan = { candidate: "p'2", ratio: 0.9 };
    const dataset = Dataset.from(Array.from({ length: 200 }, (_, i) => i))
      .map((x) => {
        if (x % 50 === 17) throw new Error(`no ${x}`);
        return x;
      })
      .batch(2)
      .offload({ service, plan, adapt: true });
    const rotation = new Rotation(["p'2", "p'3", "p'1"]);
    setAdaptation(
      dataset.node as OffloadNode,
      new Adaptation(plan, rotation, { batches: 3, ms: 0 }),
    );
    const outcomes = await outcomesOf(dataset.iterator());
    assertEquals(outcomes.filter((at) => "error" in at).length, 4);
    assertEquals(sorted(numbersIn(outcomes)), upTo(200).filter((x) => x % 50 !== 17));
  },
);

Deno.test("exchangeOf takes the paper's candidates from one source, and no others", () => {
  const namesOf = (dataset: Dataset<unknown>, name: string) => {
    const cuts = cutPointsOf(dataset.node);
    const cut = cuts.candidates.find((at) => at.name === name)!;
    const found = exchangeOf(cut, cuts);
    return found && [...found.candidates.keys()].sort();
  };
  const lines = Dataset.textLines(["a", "b"]).map((x) => x);
  assertEquals(namesOf(lines.batch(2).prefetch(1), "p'3"), ["p'1", "p'2", "p'3"]);
  assertEquals(namesOf(lines, "p'1"), ["p'1", "p'2"]);
  const marked = lines.cutPoint("here").map((x) => x).batch(2);
  assertEquals(namesOf(marked, "p'2"), ["p'1", "p'2", "p'3"]);
  assertEquals(namesOf(marked, "here"), undefined);
  // Pairs stay together, whatever is exchanged.
  assertEquals(namesOf(Dataset.zip([lines, lines]).batch(2), "p'2/0"), undefined);
});

Deno.test("withStandIns keeps the number of operators and the multiple of splits", () => {
  const rows = Dataset.range(100).map((x) => x);
  const whole = rows.batch(4).map((x) => x).node;
  const found = withStandIns(whole, rows.node);
  assertEquals([found.kind, found.inputs[0]!.kind], ["standIn", "standIn"]);
  assertEquals(found.inputs[0]!.inputs[0], rows.node);
  assertEquals(found.inputs[0]!.splitMultiple(found.splitMultiple(1)), 4);
});
