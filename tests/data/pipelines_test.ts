/** Compares random pipelines with the same operations on arrays. */

import { assertEquals } from "../assert.ts";
import { Dataset } from "../../data/mod.ts";
import { collect } from "./lib/collect.ts";
import fc from "../lib/properties.ts";

/** An operator, and its effect on an array. */
interface Operator {
  readonly name: string;
  on(dataset: Dataset<number>): Dataset<number>;
  of(elements: number[]): number[];
}

const small = fc.integer({ min: 1, max: 5 });

/** Gives elements later, to test the asynchronous path of every operator. */
const later: Operator = {
  name: "later",
  on: (dataset) => dataset.map((x) => Promise.resolve(x)),
  of: (elements) => elements,
};

const operators: fc.Arbitrary<Operator> = fc.oneof(
  fc.constant(later),
  small.map((n): Operator => ({
    name: `map(+${n})`,
    on: (dataset) => dataset.map((x) => x + n),
    of: (elements) => elements.map((x) => x + n),
  })),
  small.map((n): Operator => ({
    name: `parallel map(${n})`,
    on: (dataset) => dataset.map((x) => Promise.resolve(-x), { numParallelCalls: n }),
    of: (elements) => elements.map((x) => -x),
  })),
  small.map((n): Operator => ({
    name: `filter(% ${n})`,
    on: (dataset) => dataset.filter((x) => x % n === 0),
    of: (elements) => elements.filter((x) => x % n === 0),
  })),
  small.map((n): Operator => ({
    name: `take(${n})`,
    on: (dataset) => dataset.take(n),
    of: (elements) => elements.slice(0, n),
  })),
  small.map((n): Operator => ({
    name: `skip(${n})`,
    on: (dataset) => dataset.skip(n),
    of: (elements) => elements.slice(n),
  })),
  small.map((n): Operator => ({
    name: `repeat(${n % 3})`,
    on: (dataset) => dataset.repeat(n % 3),
    of: (elements) => Array.from({ length: n % 3 }, () => elements).flat(),
  })),
  small.map((n): Operator => ({
    name: `shard(${n}, 0)`,
    on: (dataset) => dataset.shard(n, 0),
    of: (elements) => elements.filter((_, i) => i % n === 0),
  })),
  small.map((n): Operator => ({
    name: `batch(${n}).unbatch()`,
    on: (dataset) => dataset.batch(n).unbatch() as Dataset<number>,
    of: (elements) => elements,
  })),
  small.map((n): Operator => ({
    name: `batch(${n}, drop).unbatch()`,
    on: (dataset) => dataset.batch(n, { dropRemainder: true }).unbatch() as Dataset<number>,
    of: (elements) => elements.slice(0, elements.length - elements.length % n),
  })),
  small.map((n): Operator => ({
    name: `prefetch(${n})`,
    on: (dataset) => dataset.prefetch(n),
    of: (elements) => elements,
  })),
  small.map((n): Operator => ({
    name: `flatMap(${n})`,
    on: (dataset) => dataset.flatMap((x) => Dataset.from([x]).repeat(Math.abs(x) % n)),
    of: (elements) => elements.flatMap((x) => new Array<number>(Math.abs(x) % n).fill(x)),
  })),
  small.map((n): Operator => ({
    name: `interleave(1, ${n})`,
    on: (dataset) => dataset.interleave((x) => Dataset.from([x, n]), { cycleLength: 1 }),
    of: (elements) => elements.flatMap((x) => [x, n]),
  })),
  fc.constant<Operator>({
    name: "shuffle(1)",
    on: (dataset) => dataset.shuffle(1),
    of: (elements) => elements,
  }),
  fc.constant<Operator>({
    name: "cache",
    on: (dataset) => dataset.cache(),
    of: (elements) => elements,
  }),
  small.map((n): Operator => ({
    name: `concatenate(${n})`,
    on: (dataset) => dataset.concatenate(Dataset.range(n)),
    of: (elements) => [...elements, ...Array(n).keys()],
  })),
  small.map((n): Operator => ({
    name: `zip(${n})`,
    on: (dataset) => dataset.zip(Dataset.range(n)).map(([x, y]) => x * 10 + y),
    of: (elements) => elements.slice(0, n).map((x, i) => x * 10 + i),
  })),
  fc.constant<Operator>({
    name: "enumerate",
    on: (dataset) => dataset.enumerate().map(([i, x]) => i - x),
    of: (elements) => elements.map((x, i) => i - x),
  }),
);

const pipelines = fc.tuple(
  fc.integer({ min: 0, max: 12 }),
  fc.array(operators, { maxLength: 6 }),
);

function build(
  [length, chain]: [number, Operator[]],
): { dataset: Dataset<number>; model: number[] } {
  let dataset: Dataset<number> = Dataset.range(length);
  let model = [...Array(length).keys()];
  for (const operator of chain) {
    dataset = operator.on(dataset);
    model = operator.of(model);
  }
  return { dataset, model };
}

/** Numbers without the sign of zero, which arrays and tensors keep but counting does not. */
const unsigned = (elements: unknown[]) => elements.map((x) => (x as number) + 0);

Deno.test("random pipelines give the same as arrays, twice", async () => {
  await fc.assert(
    fc.asyncProperty(pipelines, async (pipeline) => {
      const { dataset, model } = build(pipeline);
      assertEquals(unsigned(await collect(dataset)), unsigned(model));
      assertEquals(unsigned(await collect(dataset)), unsigned(model));
    }),
    { numRuns: 300 },
  );
});

Deno.test("cardinality is exact or unknown, and never wrong", async () => {
  await fc.assert(
    fc.asyncProperty(pipelines, async (pipeline) => {
      const { dataset, model } = build(pipeline);
      const cardinality = dataset.cardinality();
      if (cardinality >= 0) assertEquals(cardinality, model.length);
      await Promise.resolve();
    }),
    { numRuns: 300 },
  );
});

Deno.test("shuffles are permutations, whatever the buffer", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat(30),
      fc.integer({ min: 1, max: 40 }),
      fc.nat(),
      async (n, size, seed) => {
        const order = await collect(Dataset.range(n).shuffle(size, { seed })) as number[];
        assertEquals(order.toSorted((a, b) => a - b), [...Array(n).keys()]);
      },
    ),
    { numRuns: 100 },
  );
});
