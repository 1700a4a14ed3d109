/** `sampleFromDatasets`, `chooseFromDatasets` and `rejectionResample`. */

import { Dataset, LeatError, UNKNOWN_CARDINALITY } from "../../../../mod.ts";
import { assert, assertEquals, assertNotEquals, assertThrows } from "../../../assert.ts";
import { assertCheckpointLaw } from "../../lib/checkpoint_law.ts";
import { collect, collectWithErrors, failingOn } from "../../lib/collect.ts";

/** Endless datasets of their own numbers. */
const constants = (count: number) => Array.from({ length: count }, (_, i) => constant(i));
const constant = <T>(x: T) => Dataset.from([x]).repeat();

/** The share of each number from 0 on. */
async function frequencies(dataset: Dataset<number>, count: number): Promise<number[]> {
  const counts = new Array<number>(count).fill(0);
  let all = 0;
  for await (const x of dataset) {
    counts[x]!++;
    all++;
  }
  return counts.map((n) => n / all);
}

function assertNear(found: readonly number[], wanted: readonly number[], tolerance = 0.03): void {
  const isNear = found.every((at, i) => Math.abs(at - wanted[i]!) < tolerance);
  assert(isNear, `${found.map((at) => at.toFixed(3))} instead of ${wanted}`);
}

Deno.test("sampleFromDatasets draws by its weights", async () => {
  for (const weights of [[1, 0], [0.25, 0.75], [0.1, 0.1, 0.8], [3, 0, 1], undefined]) {
    const count = weights?.length ?? 4;
    const sum = weights?.reduce((a, b) => a + b) ?? 4;
    const wanted = Array.from({ length: count }, (_, i) => (weights?.[i] ?? 1) / sum);
    for (const varying of [false, true]) {
      if (weights === undefined && varying) continue;
      const sampled = Dataset.sampleFromDatasets(constants(count), {
        seed: 42,
        ...(weights && { weights: varying ? constant(new Float64Array(weights)) : weights }),
      });
      assertNear(await frequencies(sampled.take(4000), count), wanted);
    }
  }
});

Deno.test("sampleFromDatasets follows a dataset of weights, and ends with it", async () => {
  const weights = Dataset.from([[1, 0], [0, 1], [0, 1], [1, 0]]);
  const sampled = Dataset.sampleFromDatasets(constants(2), { weights });
  assertEquals(await collect(sampled), [0, 1, 1, 0]);
  const odd = Dataset.from([[1, 0], [1], [-1, 1], [0, 1]]);
  const refused = Dataset.sampleFromDatasets(constants(2), { weights: odd });
  assertEquals(await collectWithErrors(refused), [
    0,
    "error invalid_argument",
    "error invalid_argument",
    1,
  ]);
});

Deno.test("sampleFromDatasets gives each dataset's elements in order, all of them", async () => {
  const sampled = Dataset.sampleFromDatasets([
    Dataset.range(10),
    Dataset.range(100, 103),
    Dataset.range(0),
  ], { seed: 1 });
  const all = await collect(sampled) as number[];
  assertEquals(all.filter((x) => x < 100), await collect(Dataset.range(10)));
  assertEquals(all.filter((x) => x >= 100), [100, 101, 102]);
  assertEquals(sampled.cardinality(), 13);
});

Deno.test("sampleFromDatasets ends with the first dataset that ends, if configured, or when no weight is left", async () => {
  const how = { weights: [1, 0], stopOnEmptyDataset: true };
  const [two, five] = [Dataset.range(2), Dataset.range(5)];
  assertEquals(await collect(Dataset.sampleFromDatasets([two, five], how)), [0, 1]);
  const left = Dataset.sampleFromDatasets([two, five], { weights: [1, 0] });
  assertEquals(await collect(left), [0, 1]);
  assertEquals(left.cardinality(), 2);
  const stopping = Dataset.sampleFromDatasets([two.repeat(), five], { stopOnEmptyDataset: true });
  assertEquals(stopping.cardinality(), UNKNOWN_CARDINALITY);
  assertEquals(Dataset.sampleFromDatasets([two.repeat(), five]).cardinality(), Infinity);
});

Deno.test("sampleFromDatasets repeats by seed, in every iteration unless configured otherwise", async () => {
  const draw = (seed?: number, rerandomizeEachIteration?: boolean) =>
    Dataset.sampleFromDatasets(constants(5), { seed, rerandomizeEachIteration }).take(30);
  const fixed = draw(7);
  const first = await collect(fixed);
  assertEquals(await collect(draw(7)), first);
  assertEquals(await collect(fixed), first);
  assertNotEquals(await collect(draw(8)), first);
  const unseeded = draw();
  assertEquals(await collect(unseeded), await collect(unseeded));
  assertNotEquals(await collect(draw()), await collect(draw()));
  const anew = draw(7, true);
  assertEquals(await collect(anew), first);
  assertNotEquals(await collect(anew), first);
});

Deno.test("sampleFromDatasets refuses invalid weights, and elements of different structure", () => {
  const [two, five] = [Dataset.range(2), Dataset.range(5)];
  const sample = (weights: unknown) => () =>
    Dataset.sampleFromDatasets([two, five], { weights: weights as number[] });
  for (const weights of [[1], [1, 2, 3], [1, -1], [0, 0], [1, NaN], 1, ["a", "b"]]) {
    assertThrows(sample(weights), LeatError, "sampleFromDatasets: weights must be");
  }
  assertThrows(() => Dataset.sampleFromDatasets([]), LeatError, "datasets must be");
  assertThrows(() => Dataset.sampleFromDatasets(5 as never), LeatError, "an array");
  const letters = Dataset.from("ab");
  assertThrows(() => Dataset.sampleFromDatasets([two, letters]), LeatError, "differ at $");
});

Deno.test("sampleFromDatasets continues after a failing element", async () => {
  const sampled = Dataset.sampleFromDatasets([Dataset.range(4).map(failingOn(1))]);
  assertEquals(await collectWithErrors(sampled), [0, "error data_loss", 2, 3]);
});

Deno.test("chooseFromDatasets takes elements in the chosen order", async () => {
  const words = ["foo", "bar", "baz"].map((word) => constant(word));
  const choices = [1, 0, 1, 2, 0n, 2];
  const chosen = Dataset.chooseFromDatasets(words, Dataset.from(choices));
  assertEquals(await collect(chosen), ["bar", "foo", "bar", "baz", "foo", "baz"]);
  const turns = Dataset.range(3).repeat();
  const numbers = [0, 10, 20].map((from) => Dataset.range(from, from + 2));
  assertEquals(await collect(Dataset.chooseFromDatasets(numbers, turns)), [0, 10, 20, 1, 11, 21]);
});

Deno.test("chooseFromDatasets ends at an exhausted choice, or skips it", async () => {
  const datasets = ["foo", "bar", "baz"].map((word) => Dataset.from([word]).repeat(2));
  const choice = Dataset.from([0, 0, 0, 1, 1, 1, 2, 2, 2]);
  const stopping = Dataset.chooseFromDatasets(datasets, choice);
  assertEquals(await collect(stopping), ["foo", "foo"]);
  const going = Dataset.chooseFromDatasets(datasets, choice, { stopOnEmptyDataset: false });
  assertEquals(await collect(going), ["foo", "foo", "bar", "bar", "baz", "baz"]);
  const endless = Dataset.chooseFromDatasets(datasets, choice.repeat(), {
    stopOnEmptyDataset: false,
  });
  assertEquals((await collect(endless)).length, 6);
});

Deno.test("chooseFromDatasets and sampleFromDatasets without choices or weights are known to be empty", async () => {
  const inputs = [Dataset.range(2), Dataset.range(3)];
  const weights = Dataset.range(0).map(() => [1, 1]);
  for (
    const empty of [
      Dataset.chooseFromDatasets(inputs, Dataset.range(0)),
      Dataset.sampleFromDatasets(inputs, { weights }),
    ]
  ) {
    assertEquals(empty.cardinality(), 0);
    assertEquals(await collect(empty), []);
  }
});

Deno.test("chooseFromDatasets refuses invalid choices, each of which is lost alone", async () => {
  const choice = Dataset.from<number>([0, 2, -1, 0.5, "a" as never, 1]);
  const answers = await collectWithErrors(Dataset.chooseFromDatasets(constants(2), choice));
  assertEquals(answers, [0, ...new Array(4).fill("error invalid_argument"), 1]);
  assertThrows(() => Dataset.chooseFromDatasets([], choice), LeatError, "at least one");
  assertThrows(() => Dataset.chooseFromDatasets(constants(1), 5 as never), LeatError, "choice");
});

Deno.test("rejectionResample reaches the target distribution", async () => {
  const target = [0.6, 0.4, 0];
  const source = Dataset.range(8000).map((x) => [0, 0, 0, 0, 1, 2, 2, 2, 2, 2][x % 10]!);
  for (const initialDist of [[0.4, 0.1, 0.5], undefined]) {
    const resampled = source.rejectionResample({
      classOf: (x) => Promise.resolve(x),
      targetDist: target,
      seed: 3,
      ...(initialDist && { initialDist }),
    });
    const classes = await collect(resampled) as [number, number][];
    assert(classes.every(([number, element]) => number === element));
    assertNear(await frequencies(Dataset.from(classes.map(([n]) => n)), 3), target);
    // Class 1 is the rarest in relation to its target, so hardly any of it is dropped.
    assert(classes.filter(([n]) => n === 1).length > 750);
  }
});

Deno.test("rejectionResample drops nothing if the input has the target distribution", async () => {
  const dist = [0.25, 0.75];
  const classOf = (x: number) => x % 4 === 0 ? 0 : 1;
  const resampled = Dataset.range(40).rejectionResample({
    classOf,
    targetDist: dist,
    initialDist: dist,
  });
  assertEquals((await collect(resampled)).length, 40);
});

Deno.test("rejectionResample repeats by seed, and draws differently in each iteration", async () => {
  const make = (seed?: number) =>
    Dataset.range(200).rejectionResample({ classOf: (x) => x % 2, targetDist: [1, 3], seed });
  const seeded = make(1);
  const first = await collect(seeded);
  assertEquals(await collect(make(1)), first);
  assertNotEquals(await collect(seeded), first);
  assertNotEquals(await collect(make(2)), first);
});

Deno.test("rejectionResample refuses invalid distributions and classes", async () => {
  const resample = (targetDist: number[], initialDist?: number[]) => () =>
    Dataset.range(4).rejectionResample({
      classOf: (x) => x,
      targetDist,
      ...(initialDist && { initialDist }),
    });
  assertThrows(resample([]), LeatError, "targetDist");
  assertThrows(resample([0, 0]), LeatError, "targetDist");
  assertThrows(resample([1, -1]), LeatError, "targetDist");
  assertThrows(resample([1, 1], [1]), LeatError, "as long as targetDist (2)");
  assertThrows(resample([1, 1], [1, 0]), LeatError, "above 0 for class 1");
  const answers = await collectWithErrors(resample([0, 1])());
  assertEquals(answers.slice(-3), [[1, 1], ...new Array(2).fill("error invalid_argument")]);
});

Deno.test("sampling, choosing and resampling continue from every checkpoint", async () => {
  const inputs = () => [Dataset.range(4), Dataset.range(10, 13).shuffle(2), Dataset.range(0)];
  await assertCheckpointLaw(() => Dataset.sampleFromDatasets(inputs()));
  await assertCheckpointLaw(() => Dataset.sampleFromDatasets(inputs(), { seed: 5 }).shuffle(3));
  const weights = Dataset.from([[1, 2, 3]]).repeat();
  await assertCheckpointLaw(() => Dataset.sampleFromDatasets(inputs(), { weights }));
  const choice = Dataset.from([0, 2, 1, 0, 7, 1]).repeat(2);
  for (const stopOnEmptyDataset of [true, false]) {
    await assertCheckpointLaw(() =>
      Dataset.chooseFromDatasets(inputs(), choice, { stopOnEmptyDataset }).shuffle(2)
    );
  }
  for (const initialDist of [[0.5, 0.5], undefined]) {
    await assertCheckpointLaw(() =>
      Dataset.range(12).rejectionResample({
        classOf: (x, { random }) => random.int(2) * (failingOn(5)(x) >= 0 ? 1 : 0),
        targetDist: [1, 2],
        ...(initialDist && { initialDist }),
      })
    );
  }
});
