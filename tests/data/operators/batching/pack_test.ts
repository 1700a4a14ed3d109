/** `pack`: which sequences share a row, and the components of a row. */

import { Dataset, LeatError, type Tensor, tensor, TensorSpec } from "../../../../mod.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../../../assert.ts";
import { assertCheckpointLaw } from "../../lib/checkpoint_law.ts";
import { collect, collectWithErrors, failingOn } from "../../lib/collect.ts";

/** Sequences of these lengths, each filled with its own number, from 1. */
const sequences = (...lengths: number[]) =>
  Dataset.from(lengths.map((length, i) => new Int32Array(length).fill(i + 1)));

/** The tokens of rows, without padding. */
async function rowsOf(dataset: Dataset<{ tokens: Tensor; segmentIds: Tensor }>) {
  const rows: number[][] = [];
  for await (const { tokens, segmentIds } of dataset) {
    const ids = segmentIds.data as Int32Array;
    rows.push([...tokens.data as Int32Array].filter((_, i) => ids[i]! > 0));
  }
  return rows;
}

Deno.test("pack concatenates sequences, with segments, positions and padding", async () => {
  assertEquals(await collect(sequences(3, 2, 1).pack({ length: 4 })), [
    { tokens: [1, 1, 1, 3], segmentIds: [1, 1, 1, 2], positions: [0, 1, 2, 0] },
    { tokens: [2, 2, 0, 0], segmentIds: [1, 1, 0, 0], positions: [0, 1, 0, 0] },
  ]);
  assertEquals(await collect(sequences().pack({ length: 4 })), []);
  assertEquals(await collect(sequences(0, 0).pack({ length: 4 })), []);
});

Deno.test("pack's best fit takes the fullest row with room, its first fit the oldest", async () => {
  const lengths = sequences(5, 7, 3, 2, 1); // of 10
  const packed = (algorithm: "best_fit" | "first_fit") =>
    rowsOf(lengths.pack({ length: 10, algorithm }));
  assertEquals(await packed("best_fit"), [
    [...new Array(7).fill(2), 3, 3, 3],
    [1, 1, 1, 1, 1, 4, 4, 5],
  ]);
  assertEquals(await packed("first_fit"), [
    [1, 1, 1, 1, 1, 3, 3, 3, 4, 4],
    [...new Array(7).fill(2), 5],
  ]);
});

Deno.test("pack gives the fullest row when a sequence fits none and all are open", async () => {
  const rows = await rowsOf(sequences(3, 4, 2, 3, 1).pack({ length: 5, maxOpenBins: 2 }));
  // 3 and 2 fill a row; then 3 finds 4 and opens a second; 1 fills the row of 4.
  assertEquals(rows, [[1, 1, 1, 3, 3], [2, 2, 2, 2, 5], [4, 4, 4]]);
  const one = await rowsOf(sequences(3, 4, 2, 3).pack({ length: 5, maxOpenBins: 1 }));
  assertEquals(one, [[1, 1, 1], [2, 2, 2, 2], [3, 3, 4, 4, 4]]);
  const crowded = await rowsOf(sequences(3, 4, 3).pack({ length: 5, maxOpenBins: 2 }));
  assertEquals(crowded, [[2, 2, 2, 2], [1, 1, 1], [3, 3, 3]]);
});

Deno.test("pack loses no token and wastes little", async () => {
  const lengths = Dataset.range(1000).map((_, { random }) => 1 + random.int(99))
    .withOptions({ seed: 5 });
  const all = await collect(lengths) as number[];
  for (const algorithm of ["first_fit", "best_fit"] as const) {
    const rows = await rowsOf(sequences(...all).pack({ length: 128, algorithm }));
    const sum = all.reduce((a, b) => a + b);
    assertEquals(rows.reduce((tokens, row) => tokens + row.length, 0), sum);
    assert(sum / (rows.length * 128) > 0.93, `${rows.length} rows of ${sum} tokens`);
  }
});

Deno.test("pack makes an error, the beginning or pieces of a sequence that is too long", async () => {
  const long = sequences(2, 7, 1);
  const packed = (overflow?: "error" | "truncate" | "split") => long.pack({ length: 3, overflow });
  const rows = await collectWithErrors(packed()) as { tokens: number[] }[];
  assertEquals(rows.map((row) => row.tokens ?? row), ["error invalid_argument", [1, 1, 3]]);
  assertEquals(await rowsOf(packed("truncate")), [[2, 2, 2], [1, 1, 3]]);
  assertEquals(await collect(packed("split")), [
    { tokens: [2, 2, 2], segmentIds: [1, 1, 1], positions: [0, 1, 2] },
    { tokens: [2, 2, 2], segmentIds: [1, 1, 1], positions: [0, 1, 2] },
    { tokens: [1, 1, 2], segmentIds: [1, 1, 2], positions: [0, 1, 0] },
    { tokens: [3, 0, 0], segmentIds: [1, 0, 0], positions: [0, 0, 0] },
  ]);
});

Deno.test("pack keeps components, inner axes and dtypes, and pads each with its own value", async () => {
  const element = (from: number, count: number) => ({
    ids: new BigInt64Array(count).fill(BigInt(from)),
    labels: new Int8Array(count).fill(from),
    words: tensor(new Array(count).fill(`w${from}`)),
    vectors: tensor(new Array(count).fill([from, -from]), { dtype: "float32" }),
  });
  const packed = Dataset.from([element(1, 1), element(2, 1)]).pack({
    length: 3,
    paddingValues: { labels: -100, ids: 9 },
  });
  assertEquals(await collect(packed), [{
    ids: [1n, 2n, 9n],
    labels: [1, 2, -100],
    words: ["w1", "w2", ""],
    vectors: [[1, -1], [2, -2], [0, 0]],
    segmentIds: [1, 2, 0],
    positions: [0, 0, 0],
  }]);
  const [row] = await Array.fromAsync(packed);
  assertEquals([row!.labels.dtype, row!.vectors.dtype, row!.positions.dtype], [
    "int8",
    "float32",
    "int32",
  ]);
  const batch = await packed.batch(1).getSingleElement();
  assertEquals((batch as { ids: Tensor }).ids.shape, [1, 3]);
});

Deno.test("pack's spec is known if its input's is", () => {
  const index = new TensorSpec("int32", [8]);
  assertEquals(sequences(1, 2).pack({ length: 8 }).elementSpec, {
    tokens: index,
    segmentIds: index,
    positions: index,
  });
  assertEquals(sequences(1, 2).map((x) => x).pack({ length: 8 }).elementSpec, undefined);
  assertEquals(sequences(1).pack({ length: 8 }).cardinality(), -2);
});

Deno.test("pack refuses elements that are no sequences, which are lost alone", async () => {
  const odd = [
    { x: 5 },
    { x: new Int32Array(2), y: new Int32Array(1) },
    { x: new Int32Array(1), positions: new Int32Array(1) },
    { x: [1, 2] },
    {},
    { x: new Int32Array([7]) },
    { x: new Int8Array(1) },
    { y: new Int32Array(1) },
    { x: tensor([[1]], { dtype: "int32" }) },
    { x: new Int32Array([8]) },
  ];
  const input = Dataset.from<unknown>(odd).map((x) => x);
  const answers = await collectWithErrors(input.pack({ length: 2 }));
  assertEquals(answers.slice(0, -1), new Array(8).fill("error invalid_argument"));
  assertEquals((answers.at(-1) as { x: number[] }).x, [7, 8]);
  assertThrows(() => Dataset.range(3).pack({ length: 2 }), LeatError, "must be sequences");
});

Deno.test("pack fails with resource_exhausted if a row is longer than an array can be", async () => {
  const packed = sequences(1).pack({ length: 2 ** 53 - 1 });
  const error = await assertRejects(() => Array.fromAsync(packed), LeatError, "pack: a row is");
  assertEquals(error.code, "resource_exhausted");
});

Deno.test("pack refuses invalid options", () => {
  const one = sequences(1);
  assertThrows(() => one.pack({ length: 0 }), LeatError, "pack: length");
  assertThrows(() => one.pack({ length: 1, maxOpenBins: 0 }), LeatError, "pack: maxOpenBins");
  const odd = { length: 1, algorithm: "worst_fit" } as never;
  assertThrows(() => one.pack(odd), LeatError, 'pack: algorithm must be "best_fit" or');
  assertThrows(() => one.pack({ length: 1, overflow: "drop" as never }), LeatError, "overflow");
});

Deno.test("pack refuses padding of components that elements do not have, or of another type", async () => {
  const tokens = sequences(1);
  const named = { length: 4, paddingValues: { token: -1 } };
  const message = "pack: paddingValues names component token, which elements do not have";
  assertThrows(() => tokens.pack(named), LeatError, message);
  const odd = { length: 4, paddingValues: "a" };
  assertThrows(
    () => tokens.pack(odd),
    LeatError,
    'pack: the padding value "a" of component tokens',
  );
  const unspecified = tokens.map((row) => row).pack(named);
  await assertRejects(() => collect(unspecified), LeatError, message);
});

Deno.test("pack keeps its open rows when an element fails", async () => {
  const failing = sequences(1, 2, 1).map((x) => (failingOn(2)(x[0]!), x)).pack({ length: 2 });
  const answers = await collectWithErrors(failing);
  assertEquals(answers, ["error data_loss", {
    tokens: [1, 3],
    segmentIds: [1, 2],
    positions: [0, 0],
  }]);
});

Deno.test("pack holds only its open rows", async () => {
  const input = Dataset.counter().map(() => new Int32Array(60));
  await using iterator = input.pack({ length: 100, maxOpenBins: 4 }).iterator();
  for (let i = 0; i < 50; i++) {
    await iterator.next();
    assert(iterator.stats()[0]!.bufferedBytes <= 4 * 240);
  }
});

Deno.test("pack continues from every checkpoint with its open rows, by token or by content", async () => {
  const lengths = [3, 1, 4, 1, 5, 9, 2, 6, 0, 5, 3];
  const options = { length: 6, maxOpenBins: 2, overflow: "split" } as const;
  await assertCheckpointLaw(() => sequences(...lengths).pack(options));
  await assertCheckpointLaw(() => sequences(...lengths).shuffle(3).pack(options));
  await assertCheckpointLaw(() =>
    sequences(...lengths).map((x) => ({ x: (failingOn(4)(x.length), x) }))
      .pack({ length: 7, algorithm: "first_fit" })
  );
});
