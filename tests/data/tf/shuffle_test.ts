/**
 * The rules of shuffling, which hold whatever the numbers drawn: TensorFlow draws others.
 */
import { Dataset, type DatasetOptions } from "../../../mod.ts";
import { assert, assertEquals, assertNotEquals } from "../../assert.ts";
import { collect } from "../lib/collect.ts";

const COUNT = 24;

Deno.test("shuffle and globalShuffle give all elements, none before the buffer allows", async () => {
  const sorted = await collect(Dataset.range(COUNT)) as number[];
  for (const size of [1, 2, 5, COUNT - 1, COUNT, 10 * COUNT]) {
    const order = await collect(Dataset.range(COUNT).shuffle(size)) as number[];
    assertEquals(order.toSorted((a, b) => a - b), sorted, `${size}`);
    order.forEach((element, place) => assert(element < place + size, `${element} at ${place}`));
    assertEquals(String(order) === String(sorted), size === 1, `${size}`);
  }
});

interface Shuffling {
  readonly seed?: number;
  readonly reshuffleEachIteration?: boolean;
}

/** Which orders are the same: those of repetitions, of iterations, of datasets made alike. */
const RULES: [how: Shuffling, repetitions: boolean, iterations: boolean, datasets: boolean][] = [
  [{}, false, false, false],
  [{ reshuffleEachIteration: true }, false, false, false],
  [{ reshuffleEachIteration: false }, true, true, false],
  [{ seed: 7 }, false, false, true],
  [{ seed: 7, reshuffleEachIteration: true }, false, false, true],
  [{ seed: 7, reshuffleEachIteration: false }, true, true, true],
];

Deno.test("seed and reshuffleEachIteration decide which orders are the same", async () => {
  const shuffles = [
    (how: Shuffling) => Dataset.range(COUNT).shuffle(COUNT, how),
    (how: Shuffling) => Dataset.range(COUNT).globalShuffle(how),
  ];
  for (const make of shuffles) {
    for (const [how, repetitions, iterations, datasets] of RULES) {
      const what = JSON.stringify(how);
      const twice = await collect(make(how).repeat(2));
      const halves = [twice.slice(0, COUNT), twice.slice(COUNT)].map(String);
      assertEquals(halves[0] === halves[1], repetitions, `${what}: repetitions`);
      const dataset = make(how);
      const first = String(await collect(dataset));
      assertEquals(String(await collect(dataset)) === first, iterations, `${what}: iterations`);
      assertEquals(String(await collect(make(how))) === first, datasets, `${what}: datasets`);
    }
  }
});

Deno.test("the last value of each option in a chain applies", async () => {
  // The random state depends on the operator's number in the graph: chains of one length are compared.
  const order = async (first: DatasetOptions, second: DatasetOptions) => {
    const dataset = Dataset.range(COUNT).shuffle(COUNT).withOptions(first).withOptions(second);
    return String(await collect(dataset));
  };
  const wanted = await order({ seed: 2 }, { seed: 2 });
  assertEquals(await order({ seed: 1 }, { seed: 2 }), wanted);
  assertEquals(await order({ seed: 2 }, { deterministic: false }), wanted);
  assertNotEquals(await order({ seed: 2 }, { seed: 1 }), wanted);
});
