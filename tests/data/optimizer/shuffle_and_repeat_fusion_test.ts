/** Rule `shuffleAndRepeatFusion`. */
import { openIterator } from "../../../data/dataset_iterator.ts";
import { Dataset, LeatError } from "../../../mod.ts";
import { assertEquals, assertStringIncludes } from "../../assert.ts";
import { outcomesOf } from "../lib/outcomes.ts";
import { assertRuleLaw } from "./rule_law.ts";
import fc from "../../lib/properties.ts";

const SOURCES: readonly ((size: number, failing: number) => Dataset<number>)[] = [
  (size) => Dataset.range(size),
  (size) => Dataset.range(size).map((x, { random }) => 100 * random.int(9) + x),
  (size, failing) =>
    Dataset.range(size).map((x) => {
      if (x % 7 === failing) throw new LeatError("data_loss", `no ${x}`);
      return x;
    }),
  (size, failing) =>
    Dataset.range(size).map(async (x) => {
      for (let i = 0; i < x % 4; i++) await Promise.resolve();
      if (x === failing) throw new LeatError("aborted", `not ${x}`);
      return x;
    }, { numParallelCalls: 2 }),
  (size) => Dataset.range(size).filter((x) => x % 2 > 0).take(5),
  (size) => partlyWithTokens(size),
];

/** Only the elements of `range` can be recomputed from tokens. */
function partlyWithTokens(size: number): Dataset<number> {
  return Dataset.fromGenerator(() => [100, 101]).concatenate(Dataset.range(size));
}

Deno.test("rule shuffleAndRepeatFusion gives the elements and errors of every repetition in order", async () => {
  const pipelines = fc.record({
    source: fc.constantFrom(...SOURCES),
    size: fc.nat(12),
    failing: fc.nat(6),
    bufferSize: fc.integer({ min: 1, max: 15 }),
    count: fc.integer({ min: 1, max: 4 }),
    reshuffleEachIteration: fc.boolean(),
    at: fc.nat(30),
  });
  await fc.assert(
    fc.asyncProperty(pipelines, async ({ source, size, failing, bufferSize, count, ...rest }) => {
      const { at, reshuffleEachIteration } = rest;
      const dataset = source(size, failing).shuffle(bufferSize, { reshuffleEachIteration })
        .repeat(count);
      const rules = { shuffleAndRepeatFusion: true };
      await assertRuleLaw(dataset, at, [rules, rules]);
    }),
    { numRuns: 80 },
  );
});

Deno.test("rule shuffleAndRepeatFusion reads the next repetition while the buffer empties", async () => {
  const reads = async (count: number, shuffleAndRepeatFusion: boolean) => {
    let calls = 0;
    const dataset = Dataset.range(20).map((x) => (calls++, x)).shuffle(8).repeat()
      .withOptions({ seed: 1, optimizations: { shuffleAndRepeatFusion } });
    await using iterator = dataset.iterator();
    for (let i = 0; i < count; i++) await iterator.next();
    return calls;
  };
  assertEquals([await reads(18, false), await reads(18, true)], [20, 25]);
  assertEquals([await reads(20, false), await reads(20, true)], [20, 26]);
  // Nothing is read twice.
  assertEquals([await reads(33, false), await reads(33, true)], [40, 40]);
  const [said] = Dataset.range(9).shuffle(3).repeat().explain().rewrites;
  assertStringIncludes(said!, "for the next repetition");
});

Deno.test("rule shuffleAndRepeatFusion saves elements without tokens among others at every position", async () => {
  const dataset = partlyWithTokens(6).shuffle(6, { seed: 1 }).repeat(3);
  const rules = { shuffleAndRepeatFusion: true };
  for (let at = 0; at < 24; at++) await assertRuleLaw(dataset, at, [rules, rules]);
});

Deno.test("rule shuffleAndRepeatFusion keeps what a cache gives", async () => {
  const outcomes = async (optimizations: boolean) => {
    const dataset = Dataset.range(9).cache().shuffle(4).repeat(3);
    await using iterator = openIterator(dataset.withOptions({ seed: 2, optimizations }).node);
    return await outcomesOf(iterator);
  };
  assertEquals(await outcomes(true), await outcomes(false));
});
