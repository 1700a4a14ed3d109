/** How messages show values, and what they say about arguments. */
import { show } from "../../data/check.ts";
import { Dataset, LeatError, TensorSpec } from "../../mod.ts";
import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "../assert.ts";

Deno.test("show keeps a message short whatever the value", () => {
  const cycle: unknown[] = [];
  cycle.push(cycle, cycle);
  for (const value of ["x".repeat(3_000_000), Array(1_000_000).fill(7), cycle]) {
    assert(show(value).length < 1_000, show(value).slice(0, 2_000));
  }
  assertEquals(show([1, [2n, "a"]]), '[1, [2n, "a"]]');
  assertEquals(show(Array(10).fill(0)), "[0, 0, 0, 0, 0, 0, 0, 0, … 2 more]");
  assertEquals(show("x".repeat(101)), `"${"x".repeat(100)}"…`);
});

Deno.test("the error of an element with a long text is short", async () => {
  const text = "x".repeat(100_000);
  const spec = new TensorSpec("float32", []);
  const misfits: Dataset<unknown>[] = [
    Dataset.from<unknown>([1, text]).batch(2),
    Dataset.range(1).map(() => text, { spec, captures: { text } }),
  ];
  for (const dataset of misfits) {
    const { message } = await assertRejects(() => dataset.iterator().next(), LeatError);
    assert(message.length < 1_000, message.slice(0, 2_000));
  }
});

Deno.test("the error of an argument says which values are accepted", () => {
  const range = Dataset.range(3);
  const refusals: [() => unknown, RegExp][] = [
    [() => range.shuffle(3, { seed: 2 ** 53 }), /from -\(2\^53 - 1\) to 2\^53 - 1, or a bigint/],
    [
      () => range.bucketBySequenceLength({ length: (x) => x, boundaries: [], batchSizes: [1] }),
      /boundaries must be one or more increasing integers, got \[\]/,
    ],
  ];
  for (const [refused, wanted] of refusals) {
    assertMatch(assertThrows(refused, LeatError).message, wanted);
  }
});
