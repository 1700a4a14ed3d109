/** What two trainers are told whose pipelines are not the same. */
import { differenceOf } from "../../../../actors/dispatcher/jobs/graph_difference.ts";
import { Dataset } from "../../../../mod.ts";
import { assertEquals, assertStringIncludes } from "../../../assert.ts";

Deno.test("differenceOf shows both pipelines, and of alike ones the operator that differs", () => {
  const one = Dataset.range(9).map((x) => x + 1).batch(2).serialize();
  const longer = Dataset.range(9).map((x) => x + 1).batch(2).prefetch(1).serialize();
  assertEquals(
    differenceOf(one, longer),
    " Its pipeline is range → map → batch, this client's range → map → batch → prefetch.",
  );
  const other = Dataset.range(9).map((x) => x + 2).batch(2).serialize();
  const difference = differenceOf(one, other);
  assertStringIncludes(difference, "Both pipelines are range → map → batch, and differ in map");
  assertStringIncludes(difference, "x + 1");
  assertStringIncludes(difference, "x + 2");
  const long = Dataset.from(["x".repeat(10_000)]).serialize();
  const longOther = Dataset.from(["y".repeat(10_000)]).serialize();
  assertEquals(differenceOf(long, longOther).length < 1_000, true);
  assertEquals(differenceOf(one, one), "");
  assertEquals(differenceOf(one, new Uint8Array([1, 2, 3])), "");
});
