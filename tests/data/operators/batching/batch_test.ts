/** batch, paddedBatch, unbatch, bucketBySequenceLength: what they stack, pad and refuse. */

import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../../assert.ts";
import { LeatError } from "../../../../core/error.ts";
import { Tensor, tensor } from "../../../../core/tensor.ts";
import { Dataset, TensorSpec } from "../../../../data/mod.ts";
import { assertCheckpointLaw } from "../../lib/checkpoint_law.ts";
import fc from "../../../lib/properties.ts";
import { collect, collectWithErrors, failingOn } from "../../lib/collect.ts";

/** The error of the first element that fails. */
async function firstError(dataset: Dataset<unknown>): Promise<LeatError> {
  await using iterator = dataset.iterator();
  for (;;) {
    const error = await iterator.next().then(() => undefined, (error) => error);
    if (error === undefined) continue;
    assertInstanceOf(error, LeatError);
    return error;
  }
}

const lengths = (...counts: number[]) => Dataset.from(counts.map((n) => new Int32Array(n).fill(n)));

Deno.test("batch stacks consecutive elements, with fewer in the last batch", async () => {
  assertEquals(await collect(Dataset.range(5).batch(2)), [[0, 1], [2, 3], [4]]);
  assertEquals(Dataset.range(5).batch(2).cardinality(), 3);
});

Deno.test("batch with dropRemainder drops the short batch and fixes axis 0", async () => {
  const dataset = Dataset.range(5).batch(2, { dropRemainder: true });
  assertEquals(await collect(dataset), [[0, 1], [2, 3]]);
  assertEquals(dataset.cardinality(), 2);
  assertEquals(dataset.elementSpec, new TensorSpec("float64", [2]));
  assertEquals(Dataset.range(5).batch(2).elementSpec, new TensorSpec("float64", [null]));
});

Deno.test("batch chooses the dtype of every leaf, and keeps those of arrays and tensors", async () => {
  const element = {
    number: 1,
    big: 2n,
    truth: true,
    text: "a",
    floats: new Float32Array([1, 2]),
    pair: [tensor([[1], [2]], { dtype: "int16" }), 0.5],
    texts: tensor(["x", "y"]),
    nothing: null,
  };
  const [batch] = await Array.fromAsync(Dataset.from([element, element]).batch(2));
  const seen = Object.entries(batch!).map(([name, part]) =>
    part instanceof Tensor ? [name, part.dtype, part.shape] : name
  );
  assertEquals(seen, [
    ["number", "float64", [2]],
    ["big", "int64", [2]],
    ["truth", "bool", [2]],
    ["text", "string", [2]],
    ["floats", "float32", [2, 2]],
    "pair",
    ["texts", "string", [2, 2]],
    "nothing",
  ]);
  const [first, second] = batch!.pair as unknown as [Tensor, Tensor];
  assertEquals([first.dtype, first.shape], ["int16", [2, 2, 1]]);
  assertEquals([second.dtype, second.toArray()], ["float64", [0.5, 0.5]]);
  assertEquals(batch!.nothing, null);
});

Deno.test("batch keeps gathered elements when one fails", async () => {
  const dataset = Dataset.range(6).map(failingOn(2)).batch(3);
  assertEquals(await collectWithErrors(dataset), ["error data_loss", [0, 1, 3], [4, 5]]);
});

Deno.test("batch names both shapes and the component when shapes differ, and continues", async () => {
  const dataset = lengths(3, 4, 3).map((x) => ({ a: { b: x } })).batch(2);
  assertEquals(await collectWithErrors(dataset), [
    "error invalid_argument",
    { a: { b: [[3, 3, 3], [3, 3, 3]] } },
  ]);
  assertStringIncludes(
    (await firstError(dataset)).message,
    "Cannot batch tensors with different shapes in component a.b. First element had shape [3] " +
      "and element 1 had shape [4].",
  );
});

Deno.test("batch leaves out an odd element that begins a batch, not all later ones", async () => {
  const make = () => lengths(3, ...Array(10).fill(2)).batch(4);
  const given = await collectWithErrors(make());
  const [first, second, ...batches] = given;
  assertEquals([first, second], ["error invalid_argument", "error invalid_argument"]);
  assertEquals(batches.map((batch) => (batch as unknown[]).length), [4, 4, 1]);
  await using iterator = make().iterator();
  await assertRejects(() => iterator.next(), LeatError, "had shape [2]");
  await assertRejects(() => iterator.next(), LeatError, "More did not fit with the 1 before it");
  await assertCheckpointLaw(make);
});

Deno.test("batch refuses elements of different types or structure", async () => {
  for (
    const [elements, named] of [
      [[1, "a"], "component 0"],
      [[{ x: 1 }, { y: 1 }], "{x}"],
      [[{ x: 1 }, { x: 1n }], "component x"],
      [[[1, 2], [1]], "an array of 2"],
      [[new Int8Array(2), new Uint8Array(2)], "int8 tensor"],
      [[undefined, 1], "Cannot batch undefined"],
    ] as const
  ) {
    const error = await firstError(Dataset.from<unknown>(elements).batch(2));
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, named);
  }
});

Deno.test("batch, paddedBatch and raggedBatch name the operator that gave what is no element", async () => {
  const two = Dataset.range(2);
  const nothing = two.map(() => {});
  for (
    const [dataset, what, maker] of [
      [nothing, "undefined", "map"],
      [nothing.filter(() => true).prefetch(1).take(2), "undefined", "map"],
      [two.map((x) => ({ x, y: undefined })), "undefined in component y", "map"],
      [
        two.map(function* (x) {
          yield x;
        }),
        "Generator",
        "map",
      ],
      [
        two.map(async function* (x) {
          yield await Promise.resolve(x);
        }),
        "AsyncGenerator",
        "map",
      ],
      [two.scan(0, () => [0, new Map()]), "Map", "scan"],
    ] as [Dataset<unknown>, string, string][]
  ) {
    for (const operator of ["batch", "paddedBatch", "raggedBatch"] as const) {
      const { code, message } = await firstError(dataset[operator](2));
      assertEquals(code, "invalid_argument");
      assertStringIncludes(message, `${operator}: Cannot batch ${what}`);
      assertStringIncludes(
        message,
        "A function must return one of these; to give several elements",
      );
      assertStringIncludes(message, `The element comes from ${maker}().`);
    }
  }
});

Deno.test("batch says how to replace nulls where only some elements have one", async () => {
  for (const elements of [[{ x: 1 }, { x: null }], [{ x: null }, { x: "a" }]]) {
    const { message } = await firstError(Dataset.from<unknown>(elements).batch(2));
    assertStringIncludes(message, "in component x.");
    assertStringIncludes(
      message,
      "Replace nulls with map before batching: map((row) => ({ ...row, x: row.x ?? 0 })).",
    );
  }
  for (const elements of [[1, null], [{ x: { "a b": null } }, { x: { "a b": 1 } }]]) {
    const { message } = await firstError(Dataset.from<unknown>(elements).batch(2));
    assertStringIncludes(message, "Replace nulls with map before batching.");
  }
});

Deno.test("paddedBatch and raggedBatch name the component whose structure differs", async () => {
  const vector = new Int8Array(1);
  for (
    const [elements, message] of [
      [[{ x: vector }, { y: vector }], "in component 0. First element had {x} and element 1"],
      [[{ x: { y: vector } }, { x: {} }], "in component x. First element had {y} and element 1"],
      [[{ x: [vector] }, { x: [] }], "in component x. First element was an array of 1"],
    ] as const
  ) {
    const dataset = Dataset.from<unknown>(elements);
    for (const batches of [dataset.paddedBatch(2), dataset.raggedBatch(2)]) {
      const error = await firstError(batches);
      assertEquals(error.code, "invalid_argument");
      assertStringIncludes(error.message, message);
    }
  }
});

Deno.test("batch refuses a number that the dtype of a spec cannot hold", async () => {
  const spec = new TensorSpec("uint8", []);
  const dataset = Dataset.from([1, 300, 2]).map((x) => x, { spec }).batch(2);
  assertEquals(await collectWithErrors(dataset), ["error invalid_argument", [1, 2]]);
});

Deno.test("batch stacks integers as 64 bits where the spec says so", async () => {
  for (const dtype of ["int64", "uint64"] as const) {
    const spec = { n: new TensorSpec(dtype, []) };
    const numbers = Dataset.from([3, 0.5, 2 ** 53, 4]).map((n) => ({ n }), { spec });
    for (const dataset of [numbers.batch(2), numbers.paddedBatch(2), numbers.raggedBatch(2)]) {
      assertEquals(dataset.elementSpec, { n: new TensorSpec(dtype, [null]) });
      assertEquals(await collectWithErrors(dataset), [
        "error invalid_argument",
        "error invalid_argument",
        { n: [3n, 4n] },
      ]);
    }
    await assertCheckpointLaw(() =>
      Dataset.range(5).filter(() => true).map((x) => x, { spec: spec.n }).batch(3)
    );
  }
  const signed = Dataset.from([-1]).map((x) => x, { spec: new TensorSpec("uint64", []) });
  assertEquals(await collectWithErrors(signed.batch(1)), ["error invalid_argument"]);
});

Deno.test("batch stacks numbers and bigints together where the spec says 64 bits", async () => {
  for (const dtype of ["int64", "uint64"] as const) {
    const spec = new TensorSpec(dtype, []);
    const mixed = Dataset.from<number | bigint>([1, 2n ** 62n, 3n, 4]).map((x) => x, { spec });
    for (const dataset of [mixed.batch(2), mixed.paddedBatch(2)]) {
      assertEquals(await collect(dataset), [[1n, 2n ** 62n], [3n, 4n]]);
    }
    await assertCheckpointLaw(() => mixed.filter(() => true).batch(3));
  }
  const unspecified = Dataset.from<number | bigint>([1, 2n]).batch(2);
  assertEquals(await collectWithErrors(unspecified), ["error invalid_argument", [1]]);
});

Deno.test("batch says which spec takes bigints beyond int64", async () => {
  const big = Dataset.from([2n ** 63n]);
  const error = await firstError(big.batch(1));
  assertStringIncludes(error.message, "9223372036854775808n of element 0 in component 0");
  assertStringIncludes(error.message, `{ spec: new TensorSpec("uint64", []) }`);
  const spec = new TensorSpec("uint64", []);
  assertEquals(await collect(big.map((x) => x, { spec }).batch(1)), [[2n ** 63n]]);
});

Deno.test("batch stacks byte strings of any length where the spec says bytes", async () => {
  const spec = new TensorSpec("bytes", []);
  const records = Dataset.from([new Uint8Array(1), new Uint8Array(2)]).map((x) => x, { spec });
  for (const dataset of [records.batch(2), records.paddedBatch(2)]) {
    const [batch] = await Array.fromAsync(dataset);
    assertEquals([batch!.dtype, batch!.shape], ["bytes", [2]]);
  }
});

Deno.test("batches grow beyond their initial allocation", async () => {
  const rowBytes = 23 << 20; // the initial 64 MiB hold two rows
  const big = Dataset.range(3).map((x) => new Uint8Array(23 << 20).fill(x)).batch(3);
  const [batch] = await Array.fromAsync(big);
  assertEquals(batch!.shape, [3, rowBytes]);
  const data = batch!.data as Uint8Array;
  assertEquals([0, 1, 2].map((row) => data[(row + 1) * rowBytes - 1]), [0, 1, 2]);
});

Deno.test("batch operators check their arguments when called", () => {
  const dataset = Dataset.range(3);
  for (
    const [make, named] of [
      [() => dataset.batch(0), "batch: size must be an integer of at least 1, got 0"],
      [() => dataset.batch(1.5), "got 1.5"],
      [() => dataset.paddedBatch(-1), "paddedBatch: size"],
      [() => dataset.paddedBatch(2, { paddedShapes: ["x"] as never }), "paddedShapes"],
    ] as const
  ) assertStringIncludes(assertThrows(make, LeatError).message, named);
});

Deno.test("paddedBatch pads to the longest of the batch", async () => {
  const dataset = lengths(1, 3, 2).paddedBatch(2);
  assertEquals(await collect(dataset), [[[1, 0, 0], [3, 3, 3]], [[2, 2]]]);
});

Deno.test("paddedBatch pads every axis, and to fixed lengths where shapes say so", async () => {
  const element = Dataset.from([tensor([[1, 2]]), tensor([[3], [4]])]);
  assertEquals(await collect(element.paddedBatch(2)), [[[[1, 2], [0, 0]], [[3, 0], [4, 0]]]]);
  const fixed = element.paddedBatch(1, { paddedShapes: [null, 3], paddingValues: -1 });
  assertEquals(await collect(fixed), [[[[1, 2, -1]]], [[[3, -1, -1], [4, -1, -1]]]]);
});

Deno.test("paddedBatch copies rows that differ only in the first axis each at once", async () => {
  let runs = 0;
  const rows = [3, 2].map((length) => {
    const data = new Float32Array(length * 2).fill(length);
    const subarray = (from?: number, to?: number) => (runs++, data.slice(from, to));
    return new Tensor("float32", [length, 2, 1], Object.assign(data, { subarray }));
  });
  const dataset = Dataset.range(2).map((i) => rows[i]!).paddedBatch(2);
  const [batch] = await Array.fromAsync(dataset);
  assertEquals([batch!.shape, runs], [[2, 3, 2, 1], 2]);
  assertEquals([...batch!.data as Float32Array], [3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 0, 0]);
});

Deno.test("paddedBatch keeps each item at its position, whatever the rank and the lengths", async () => {
  const shapes = fc.integer({ min: 1, max: 4 }).chain((rank) =>
    fc.array(fc.array(fc.nat(3), { minLength: rank, maxLength: rank }), {
      minLength: 1,
      maxLength: 4,
    })
  );
  await fc.assert(fc.asyncProperty(shapes, fc.constantFrom(-1, undefined), async (shapes, fill) => {
    const size = (shape: readonly number[]) => shape.reduce((a, b) => a * b, 1);
    const rows = shapes.map((shape) =>
      new Tensor("int32", shape, Int32Array.from({ length: size(shape) }, (_, i) => i + 1))
    );
    const padding = fill === undefined ? {} : { paddingValues: fill };
    const [batch] = await Array.fromAsync(Dataset.from(rows).paddedBatch(rows.length, padding));
    const longest = shapes[0]!.map((_, axis) => Math.max(...shapes.map((shape) => shape[axis]!)));
    assertEquals(batch!.shape, [rows.length, ...longest]);
    const wanted = shapes.flatMap((shape) =>
      Array.from({ length: size(longest) }, (_, item) => {
        const at = longest.map((_, axis) =>
          Math.floor(item / size(longest.slice(axis + 1))) % longest[axis]!
        );
        const isPadding = at.some((index, axis) => index >= shape[axis]!);
        return isPadding
          ? fill ?? 0
          : 1 + at.reduce((sum, index, axis) => sum + index * size(shape.slice(axis + 1)), 0);
      })
    );
    assertEquals([...batch!.data], wanted);
  }));
});

Deno.test("paddedBatch takes shapes and values per component", async () => {
  const dataset = Dataset.from([{ x: new Int8Array([1]), words: tensor(["a"]), n: 1 }])
    .paddedBatch(1, {
      paddedShapes: { x: [2], words: [-1], n: [] },
      paddingValues: { x: 7, words: "?", n: 0 },
    });
  assertEquals(await collect(dataset), [{ x: [[1, 7]], words: [["a"]], n: [1] }]);
  const wide = Dataset.from([tensor(["a"]), tensor(["b", "c"])]).paddedBatch(2);
  assertEquals(await collect(wide), [[["a", ""], ["b", "c"]]]);
});

Deno.test("paddedBatch: a fixed length smaller than the data is data_loss of the element", async () => {
  const dataset = lengths(1, 3, 2).paddedBatch(2, { paddedShapes: [2] });
  assertEquals(await collectWithErrors(dataset), ["error data_loss", [[1, 0], [2, 2]]]);
});

Deno.test("paddedBatch refuses shapes of another rank and values of another type", async () => {
  const unspecified = lengths(1).map((row) => row);
  const rank = await firstError(unspecified.paddedBatch(1, { paddedShapes: [1, 2] }));
  assertStringIncludes(rank.message, "must have 1 dimensions");
  const value = await firstError(unspecified.paddedBatch(1, { paddingValues: "x" }));
  assertStringIncludes(value.message, "is no int32");
});

Deno.test("paddedBatch refuses names that elements without a spec do not have", async () => {
  const rows = lengths(1, 2).map((x) => ({ x, pair: [x, { y: x }] }));
  const cases: [options: object, message: string][] = [
    [{ paddingValues: { X: -1 } }, "paddingValues names component X, which elements do not have"],
    [{ paddingValues: { pair: [0, { Y: 0 }] } }, "paddingValues names component pair[1].Y"],
    [
      { paddedShapes: { x: [4], pair: [[4], { y: [4] }], z: [4] } },
      "paddedShapes names component z",
    ],
  ];
  for (const [options, message] of cases) {
    await assertRejects(() => collect(rows.paddedBatch(2, options)), LeatError, message);
  }
  await collect(rows.paddedBatch(2, { paddingValues: { x: 1, pair: [0, 1] } }));
});

Deno.test("paddedBatch refuses immediately what the spec of its elements rules out", () => {
  const rows = Dataset.from([{ a: new Int32Array(3), b: [tensor(["x"]), 1] }]);
  const good = { a: [4], b: [[null], []] };
  const cases: [options: object, message: string][] = [
    [{ paddedShapes: [4] }, "paddedShapes has no shape for component a"],
    [{ paddedShapes: { a: [4] } }, "paddedShapes has no shape for component b"],
    [{ paddedShapes: { ...good, b: [[null]] } }, "no shape for component b[1]"],
    [{ paddedShapes: { ...good, c: [] } }, "paddedShapes names component c, which elements do not"],
    [{ paddedShapes: { ...good, a: [4, 4] } }, "component a must have 1 dimensions"],
    [{ paddedShapes: { ...good, b: [[null], [1]] } }, "component b[1] must have 0 dimensions"],
    [{ paddedShapes: { ...good, a: [2] } }, "[2] of component a is smaller than its elements"],
    [{ paddingValues: 0 }, "the padding value 0 of component b[0] is no string"],
    [{ paddingValues: { a: 0.5 } }, "the padding value 0.5 of component a is no int32"],
    [{ paddingValues: { a: true } }, "the padding value true of component a is no int32"],
    [{ paddingValues: { d: 1 } }, "paddingValues names component d"],
    [{ paddingValues: { b: ["", 0, 0] } }, "paddingValues names component b[2]"],
  ];
  for (const [options, message] of cases) {
    const error = assertThrows(() => rows.paddedBatch(2, options), LeatError, message);
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, "paddedBatch: ");
    const bucket = { length: () => 1, boundaries: [5], batchSizes: [2, 2] };
    assertThrows(
      () => rows.bucketBySequenceLength({ ...bucket, ...options }),
      LeatError,
      `bucketBySequenceLength: `,
    );
    rows.bucketBySequenceLength({ ...bucket, ...options, noPadding: true });
    rows.map((row) => row).paddedBatch(2, options); // nothing is known of these
  }
  rows.paddedBatch(2, { paddedShapes: good, paddingValues: { a: 1, b: ["", 0] } });
  rows.paddedBatch(2, { paddingValues: { b: ["-"] } });
  rows.paddedBatch(2, { paddingValues: { a: null, b: ["-", null] } });
});

Deno.test("unbatch undoes batch", async () => {
  const rows = Dataset.range(5).map((x) => ({ x, y: [x * 2, "a"] as const }));
  assertEquals(await collect(rows.batch(2).unbatch()), await collect(rows));
  assertEquals(await collect(Dataset.from([tensor([[1, 2], [3, 4]])]).unbatch()), [[1, 2], [3, 4]]);
});

Deno.test("unbatch refuses components of different lengths, and skips empty ones", async () => {
  const odd = Dataset.from([[new Int8Array(1), new Int8Array(2)]]).unbatch();
  assertEquals(await collectWithErrors(odd), ["error invalid_argument"]);
  assertEquals(await collect(lengths(0, 2, 0).unbatch()), [2, 2]);
});

const BUCKETS = {
  length: (x: Int32Array) => x.length,
  boundaries: [3, 5],
  batchSizes: [2, 2, 2],
};

Deno.test("bucketBySequenceLength puts a boundary's length into the bucket above it", async () => {
  const dataset = lengths(1, 3, 2, 4, 5, 9).bucketBySequenceLength(BUCKETS);
  assertEquals((await Array.fromAsync(dataset)).map((batch) => batch.shape), [
    [2, 2],
    [2, 4],
    [2, 9],
  ]);
});

Deno.test("bucketBySequenceLength gives the remainders by bucket, or drops them", async () => {
  const dataset = lengths(7, 3, 1);
  const shapes = async (options: object) =>
    (await Array.fromAsync(dataset.bucketBySequenceLength({ ...BUCKETS, ...options })))
      .map((batch) => batch.shape);
  assertEquals(await shapes({}), [[1, 1], [1, 3], [1, 7]]);
  assertEquals(await shapes({ dropRemainder: true }), []);
});

Deno.test("bucketBySequenceLength pads to the boundary less one, beyond the last is an error", async () => {
  const dataset = lengths(1, 3, 9).bucketBySequenceLength({
    ...BUCKETS,
    padToBucketBoundary: true,
    batchSizes: [1, 1, 1],
  });
  assertEquals(await collectWithErrors(dataset), [
    [[1, 0]],
    [[3, 3, 3, 0]],
    "error invalid_argument",
  ]);
  assertStringIncludes((await firstError(dataset)).message, "last of the boundaries (");
});

Deno.test("bucketBySequenceLength with noPadding drops elements that do not stack", async () => {
  const dataset = lengths(1, 2, 1).bucketBySequenceLength({
    ...BUCKETS,
    batchSizes: [3, 1, 1],
    noPadding: true,
  });
  assertEquals(await collectWithErrors(dataset), ["error invalid_argument", [[1], [1]]]);
});

Deno.test("bucketBySequenceLength reads elements without a spec no more often than paddedBatch", async () => {
  const readsOf = async (stack: (rows: Dataset<{ x: Int32Array }>) => Dataset<unknown>) => {
    let reads = 0;
    const rows = Dataset.range(400).map(() => ({
      get x() {
        reads++;
        return new Int32Array(2);
      },
    }));
    await Array.fromAsync(stack(rows));
    return reads;
  };
  const padded = await readsOf((rows) => rows.paddedBatch(100));
  const options = { length: () => 2, boundaries: [3], batchSizes: [100, 100] };
  for (const noPadding of [false, true]) {
    const reads = await readsOf((rows) => rows.bucketBySequenceLength({ ...options, noPadding }));
    assert(reads < padded + 50, `${reads}, not about ${padded}`); // samples for figures vary
  }
});

Deno.test("bucketBySequenceLength checks boundaries and batch sizes", () => {
  const make = (options: object) => () =>
    lengths(1).bucketBySequenceLength({ ...BUCKETS, ...options });
  for (
    const [options, named] of [
      [{ boundaries: [3, 3] }, "increasing"],
      [{ batchSizes: [1] }, "one longer than boundaries (3)"],
      [{ batchSizes: [1, 0, 1] }, "batchSizes must be an integer of at least 1"],
    ] as const
  ) assertStringIncludes(assertThrows(make(options), LeatError).message, named);
});

Deno.test("unbatch keeps components absent that are absent in every row", async () => {
  const rows = Dataset.from([{ none: null, x: 1 }, { none: null, x: 2 }]);
  assertEquals(await collect(rows.batch(2).unbatch()), [{ none: null, x: 1 }, {
    none: null,
    x: 2,
  }]);
  assertStringIncludes(
    (await firstError(Dataset.from([null, null]).batch(2).unbatch())).message,
    "has no components",
  );
});

Deno.test("paddedBatch refuses padding that the dtype cannot hold", async () => {
  const refused: [Dataset<unknown>, number | bigint][] = [
    [Dataset.from([new Int32Array(1)]), 1.5],
    [Dataset.from([new Uint8Array(1)]), 300],
    [Dataset.from([new BigUint64Array(1)]), -1n],
  ];
  for (const [dataset, paddingValues] of refused) {
    assertThrows(() => dataset.paddedBatch(1, { paddingValues }), LeatError, "the padding value");
    const unspecified = dataset.map((row) => row);
    const { code } = await firstError(unspecified.paddedBatch(1, { paddingValues }));
    assertEquals(code, "invalid_argument");
  }
  const rounded = Dataset.from([new Float32Array(1)]).paddedBatch(1, {
    paddedShapes: [2],
    paddingValues: 0.1,
  });
  assertEquals(await collect(rounded), [[[0, Math.fround(0.1)]]]);
});

Deno.test("paddedBatch knows the padded lengths, or those of its elements", () => {
  const rows = Dataset.from([{ a: new Int8Array(2), b: [new Int8Array(1), 3] }]);
  assertEquals(
    rows.paddedBatch(2, { paddedShapes: { a: [4], b: [[-1], []] }, dropRemainder: true })
      .elementSpec,
    {
      a: new TensorSpec("int8", [2, 4]),
      b: [new TensorSpec("int8", [2, 1]), new TensorSpec("float64", [2])],
    },
  );
});

Deno.test("a failing first element fixes no shape for the others", async () => {
  const rows = Dataset.from<unknown>([new Int8Array(9), new Float32Array(1), new Float32Array(2)]);
  assertEquals(await collectWithErrors(rows.paddedBatch(2, { paddedShapes: [2] })), [
    "error data_loss",
    [[0, 0], [0, 0]],
  ]);
});

Deno.test("batch accepts numParallelCalls and deterministic like tf.data, without effect", async () => {
  const dataset = Dataset.range(5).batch(2, { numParallelCalls: 3, deterministic: false });
  assertEquals(await collect(dataset), [[0, 1], [2, 3], [4]]);
  assertEquals(await collect(Dataset.deserialize(dataset.serialize(), { trustPipeline: true })), [
    [0, 1],
    [2, 3],
    [4],
  ]);
  assertStringIncludes(String(dataset.explain()), "numParallelCalls=3, deterministic=false");
  for (const options of [{ numParallelCalls: 0 }, { deterministic: 1 as unknown as boolean }]) {
    const { code } = assertThrows(() => Dataset.range(5).batch(2, options), LeatError);
    assertEquals(code, "invalid_argument");
  }
});

Deno.test("a batch that cannot be allocated is lost alone", async () => {
  const lengths = Dataset.from([1, 1, 2, 2, 1, 1]).map((n) => new Float64Array(n));
  const outlier = { resource_exhausted: new Float64Array(1) };
  Object.defineProperty(outlier.resource_exhausted, "length", { value: 2 ** 50 });
  const rows = lengths.take(3).concatenate(Dataset.from([outlier.resource_exhausted]))
    .concatenate(lengths.skip(4)).paddedBatch(2);
  assertEquals(await collectWithErrors(rows), [
    [[0], [0]],
    "error resource_exhausted",
    [[0], [0]],
  ]);
});

Deno.test("the type of a batch has the dtype of tensors and typed arrays, not dtypes that a spec decides", async () => {
  const pixels = tensor(new Uint8Array(2));
  const dataset = Dataset.from([{ pixels, weights: new Float32Array(1), label: 1 }]).batch(1);
  for await (const { pixels, weights, label } of dataset) {
    pixels satisfies Tensor<"uint8">;
    weights satisfies Tensor<"float32">;
    // @ts-expect-error: the spec determines the dtype of a number.
    label satisfies Tensor<"float64">;
    assertEquals([pixels.dtype, weights.dtype, label.dtype], ["uint8", "float32", "float64"]);
  }
});
