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
  const two = Dataset.range(3).concatenate(Dataset.range(4).skip(1)).serialize();
  assertStringIncludes(
    differenceOf(two, one),
    "Its pipeline is range → skip → range → concatenate,",
  );
  assertEquals(differenceOf(one, one), "");
  assertEquals(differenceOf(one, new Uint8Array([1, 2, 3])), "");
});

Deno.test("differenceOf shows the last difference, also before the last twenty operators", () => {
  const chain = (...kinds: string[]) => {
    const root = kinds.reduce<unknown>(
      (input, kind) => ({ kind, inputs: input === undefined ? [] : [input] }),
      undefined,
    );
    return new TextEncoder().encode(JSON.stringify({ root }));
  };
  const maps = (count: number) => Array<string>(count).fill("map");
  assertEquals(
    differenceOf(chain("range", "take", ...maps(22)), chain("range", "skip", ...maps(22))),
    " Its pipeline is range → take → map → …, this client's range → skip → map → ….",
  );
  assertEquals(
    differenceOf(chain("range", ...maps(22)), chain("range", "skip", ...maps(22))),
    " Its pipeline is range → map → …, this client's range → skip → map → ….",
  );
  const [short, long] = [chain("range", ...maps(21)), chain("range", ...maps(24))];
  const [shortText, longText] = ["range → map → …", "range → map → map → map → map → …"];
  assertEquals(
    differenceOf(long, short),
    ` Its pipeline is ${longText}, this client's ${shortText}.`,
  );
  assertEquals(
    differenceOf(short, long),
    ` Its pipeline is ${shortText}, this client's ${longText}.`,
  );
});

Deno.test("differenceOf shows an operator without options", () => {
  const graph = (node: object) => new TextEncoder().encode(JSON.stringify({ root: node }));
  assertStringIncludes(
    differenceOf(graph({ kind: "a", inputs: [] }), graph({ kind: "a", attributes: 1, inputs: [] })),
    "differ in a: it has null, this client's 1.",
  );
});

Deno.test("differenceOf reads no large pipeline, and of none more than some hundred operators", () => {
  const wide = (kind: number, count: number) => {
    const input = '{"kind":1,"inputs":[]}';
    const inputs = Array(count).fill(input).join(",");
    return new TextEncoder().encode(`{"root":{"kind":${kind},"inputs":[${inputs}]}}`);
  };
  for (const count of [45_000, 2_000, 500]) {
    const [one, other] = [wide(1, count), wide(2, count)];
    assertStringIncludes(differenceOf(one, other), `${one.byteLength} bytes`);
    assertStringIncludes(differenceOf(one, other), "are not compared");
  }
  assertStringIncludes(differenceOf(wide(1, 499), wide(2, 499)), "Its pipeline is … → 1 → ");
  const large = Dataset.from(["x".repeat(70_000)]).serialize();
  assertStringIncludes(differenceOf(large, wide(1, 1)), `${large.byteLength} bytes`);
  assertEquals(differenceOf(large, large), "");
});
