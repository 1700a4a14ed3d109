/** The captures that functions take by name from their last argument. */
import { assertEquals, assertRejects, assertThrows } from "../../assert.ts";
import { Dataset, LeatError, shardingPolicy, udf } from "../../../mod.ts";

// Plain JavaScript: the compiler would find the misspelt names.
// deno-lint-ignore no-explicit-any -- see above
const ten = () => Dataset.range(10) as any;
// deno-lint-ignore no-explicit-any -- see above
const statics = Dataset as any;
// deno-lint-ignore no-explicit-any -- see above
type Extra = any;

const captures = { free: 1 };
const none = ({ fre }: Extra) => [fre];
const one = (x: number, { fre }: Extra) => x + fre;
const two = (x: number, y: number, { fre }: Extra) => x + y + fre;
const key = (x: number) => x % 2;
const init = () => 0;
const reduce = (x: number, y: number) => x + y;
const grouped = { key, reduce, windowSize: 2, captures };
const reduced = { key, init, reduce, captures };

const REFUSED: readonly [name: string, make: () => unknown][] = [
  ["fromGenerator: fn", () => statics.fromGenerator(none, { captures })],
  ["map: fn", () => ten().map(one, { captures })],
  ["filter: predicate", () => ten().filter(one, { captures })],
  ["scan: fn", () => ten().scan(0, two, { captures })],
  ["flatMap: fn", () => ten().flatMap(one, { captures })],
  ["interleave: fn", () => ten().interleave(one, { captures })],
  ["takeWhile: predicate", () => ten().takeWhile(one, { captures })],
  ["snapshot: shardFunc", () => ten().snapshot("s", { shardFunc: one, captures })],
  ["snapshot: readerFunc", () => ten().snapshot("s", { readerFunc: one, captures })],
  [
    "rejectionResample: classOf",
    () => ten().rejectionResample({ classOf: one, targetDist: [1], captures }),
  ],
  ["groupByWindow: key", () => ten().groupByWindow({ ...grouped, key: one })],
  ["groupByWindow: reduce", () => ten().groupByWindow({ ...grouped, reduce: two })],
  ["groupByWindow: windowSize", () => ten().groupByWindow({ ...grouped, windowSize: one })],
  ["groupByReducer: key", () => ten().groupByReducer({ ...reduced, key: one })],
  ["groupByReducer: init", () => ten().groupByReducer({ ...reduced, init: one })],
  ["groupByReducer: reduce", () => ten().groupByReducer({ ...reduced, reduce: two })],
  ["groupByReducer: finalize", () => ten().groupByReducer({ ...reduced, finalize: two })],
  [
    "bucketBySequenceLength: length",
    () =>
      ten().bucketBySequenceLength({ length: one, boundaries: [4], batchSizes: [1, 1], captures }),
  ],
  [
    "shardingPolicy: shard",
    () => shardingPolicy("p", { shard: (dataset, { fre }: Extra) => dataset.skip(fre), captures }),
  ],
];

for (const [name, make] of REFUSED) {
  Deno.test(`${name} that takes a name which is no capture is refused, with the nearest`, () => {
    const { code, message } = assertThrows(make, LeatError) as LeatError;
    assertEquals([code, message], [
      "invalid_argument",
      `${name} takes "fre" from its last argument, but captures has free; did you mean "free"?`,
    ]);
  });
}

Deno.test("reduce and save refuse a function that takes a name which is no capture", async () => {
  const missing = `takes "fre" from its last argument, but captures has free`;
  await assertRejects(() => ten().reduce(0, two, { captures }), LeatError, missing);
  await assertRejects(() => ten().save("s", { shardFunc: one, captures }), LeatError, missing);
});

Deno.test("map without captures names what was meant, or how to pass a capture", () => {
  assertThrows(
    () => ten().map((x: number, { indx }: Extra) => x + indx),
    LeatError,
    `map: fn takes "indx" from its last argument, but there are no captures; did you mean "index"?`,
  );
  assertThrows(
    () => ten().map((x: number, { mean }: Extra) => x - mean),
    LeatError,
    `but there are no captures; pass it as { captures: { mean } }`,
  );
  assertThrows(
    () => ten().map((x: number, { fre }: Extra = {}) => x + fre, { captures }),
    LeatError,
    `did you mean "free"?`,
  );
});

Deno.test("map accepts defaults, what the engine gives, undefined captures and other functions", async () => {
  const results = await Promise.all(
    [
      ten().map((x: number, { fre = 2 }: Extra) => x + fre, { captures }),
      ten().map(
        (x: number, { free, index, tensor: _, random: { uniform: __ } }: Extra) =>
          x * 0 + free + index,
        { captures },
      ),
      ten().map((_: number, { free }: Extra) => free ?? 3, { captures: { free: undefined } }),
      ten().map((_: number, { fre, ...rest }: Extra) => fre ?? rest.free, { captures }),
      ten().map(({ fre }: Extra) => fre ?? 4, { captures }),
      ten().map((_: number, extra: Extra) => extra.fre ?? 5, { captures }),
      ten().map(Math.abs, { captures }),
    ].map((dataset) => Array.fromAsync(dataset.take(2))),
  );
  assertEquals(results, [[2, 3], [1, 2], [3, 3], [1, 1], [4, 4], [5, 5], [0, 1]]);
  ten().map(udf("file:///none.ts", "none"), { captures });
  shardingPolicy("p", { shard: (dataset, { index, count }) => dataset.shard(count, index) });
});

Deno.test("map gives captures the types of variables, not of literals", async () => {
  const dataset = Dataset.range(2).map((x, { count, flag, list }) => {
    // The compiler is the test: none of these could be assigned to the type of a literal.
    let sum = count;
    sum = x + 1;
    let isOdd = flag;
    isOdd = x % 2 === 1;
    const copy: number[] = list;
    return [sum, isOdd, copy.length];
  }, { captures: { count: 3, flag: false, list: [1, 2] } });
  assertEquals(await Array.fromAsync(dataset), [[1, false, 2], [2, true, 2]]);
});
