/**
 * Ordered chains: which part of a pipeline is produced split by split, and how splits are joined.
 */
import { chainOf, distributeChains } from "../../../data/deterministic/chain.ts";
import { RemainderJoin } from "../../../data/deterministic/join.ts";
import { splitOrder } from "../../../data/deterministic/order.ts";
import { openSplit } from "../../../data/deterministic/split_run.ts";
import { DistributeNode } from "../../../data/operators/distribute.ts";
import { Dataset, LeatError, type Tensor, TensorSpec } from "../../../mod.ts";
import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { canonicalStream } from "../../../sim/reference/canonical_stream.ts";
import { hurried } from "../lib/hurried.ts";
import { outcomesOf } from "../lib/outcomes.ts";
import { orderedReference, withMisfits } from "../lib/ordered_reference.ts";

const element = (value: unknown) => ({ element: value });
const batchOf = (data: number[]) => element({ dtype: "float64", shape: [data.length], data });

Deno.test("chainOf takes one source, operators of splits, one batch and one-to-one operators", () => {
  const files = Dataset.tfRecords(Dataset.listFiles("./*.tfrecord"));
  const chain = chainOf(files.map((x) => x).shuffle(5).batch(2).map((x) => x).prefetch(1).node)!;
  assertEquals(chain.perSplit.kind, "shuffle");
  assertEquals(chain.batch?.kind, "batch");
  assertEquals(chain.after.map((node) => node.kind), ["map", "prefetch"]);
  assertEquals(chain.shuffled, true);
  assertEquals(chainOf(Dataset.range(5).map((x) => x).node)?.batch, undefined);
  assertEquals(chainOf(Dataset.range(5).node)?.shuffled, false);
  assertEquals(chainOf(Dataset.range(5).take(2).node), undefined);
  assertEquals(chainOf(Dataset.range(5).batch(2).batch(2).node), undefined);
  assertEquals(chainOf(Dataset.range(5).zip(Dataset.range(5)).node), undefined);
  assertEquals(chainOf(Dataset.fromGenerator(() => [1]).node), undefined);
});

Deno.test("chainOf draws the order of splits for each format if the listing of its files is shuffled", () => {
  const formats: ((files: Dataset<string>) => Dataset<unknown>)[] = [
    (files) => Dataset.tfRecords(files),
    (files) => Dataset.textLines(files),
    (files) => Dataset.jsonLines(files),
    (files) => Dataset.csv(files),
    (files) => Dataset.csv(files, { useQuoteDelim: false }),
    (files) => Dataset.fixedLengthRecords(files, { recordBytes: 2 }),
    (files) => Dataset.parquet(files),
    (files) => Dataset.arrow(files),
    (files) => Dataset.npy(files),
    (files) => Dataset.npz(files),
    (files) => Dataset.wav(files),
    (files) => Dataset.webDataset(files),
  ];
  for (const format of formats) {
    for (const shuffle of [true, false]) {
      const { node } = format(Dataset.listFiles("./*", { shuffle }));
      assertEquals(chainOf(node)?.shuffled, shuffle, `${node.kind}, shuffle: ${shuffle}`);
    }
  }
});

Deno.test("distributeChains distributes the longest chains and leaves the rest to the reader", () => {
  const kindsOf = (dataset: Dataset<unknown>) => {
    const found: string[] = [];
    const root = distributeChains(dataset.node, (chain, number) => {
      found.push(`${number}: ${chain.kind}`);
      return new DistributeNode(chain, { service: "ws://127.0.0.1:1" });
    });
    return [root.kind, ...found];
  };
  assertEquals(kindsOf(Dataset.range(9).batch(2)), ["distribute", "0: batch"]);
  assertEquals(kindsOf(Dataset.range(9).batch(2).repeat(2)), ["repeat", "0: batch"]);
  assertEquals(kindsOf(Dataset.range(9).take(3).batch(2)), ["batch", "0: range"]);
  assertEquals(kindsOf(Dataset.zip([Dataset.range(3), Dataset.range(4).map((x) => x)])), [
    "zip",
    "0: range",
    "1: map",
  ]);
});

Deno.test("distributeChains keeps elements in order whatever the pipeline says", () => {
  const hurried = Dataset.range(9).map((x) => x, { numParallelCalls: 4, deterministic: false });
  let found: unknown;
  distributeChains(hurried.node, (chain) => {
    found = chain.attributes["deterministic"];
    return chain;
  });
  assertEquals(found, true);
});

Deno.test("openSplit keeps the order of datasets that functions make, whatever they say", async () => {
  const numbers = hurried(Dataset.range(2));
  assertEquals(await Array.fromAsync(numbers), [1, 0, 3, 2], "it is lost where it may be");
  assertEquals(await orderedReference(numbers), [0, 1, 2, 3].map(element));
});

Deno.test("remainders join in the order of splits, each batch after the split that completes it", async () => {
  // 1,000 elements are cut into splits of 4; a filter leaves an odd number of them.
  const dataset = Dataset.range(1000).filter((x) => x % 3 !== 0).batch(3, { dropRemainder: false });
  const stream = await orderedReference(dataset);
  const rows = stream.flatMap((at) => (at as { element: { data: number[] } }).element.data);
  assertEquals(rows.length, 666);
  assertEquals(new Set(rows).size, 666);
  assert(
    stream.slice(0, -1).every((at) =>
      (at as { element: { shape: number[] } }).element.shape[0] === 3
    ),
  );
  // Splits are multiples of the batch if all operators between are one-to-one; a filter is not.
  const first = await orderedReference(Dataset.range(512).filter((x) => x < 10).batch(3));
  assertEquals(first, [batchOf([0, 1, 2]), batchOf([3, 4, 5]), batchOf([6, 7, 8]), batchOf([9])]);
});

Deno.test("a batch without rows to count is refused under DETERMINISTIC, with a remedy", async () => {
  for (const element of [{}, null, { a: null }]) {
    const chain = chainOf(
      Dataset.range(2).map(() => element, { captures: { element } }).batch(2).node,
    )!;
    const split = { start: 0, stop: 2 };
    const options = { seed: 1n, epoch: 0, index: 0, split, onRemainder: () => {} };
    await using batches = openSplit(chain, options);
    const error = await assertRejects(() => batches.next(), LeatError);
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(
      error.message,
      "DETERMINISTIC and distributedSave() cannot count the rows",
    );
    assertStringIncludes(error.message, "add a component");
  }
});

Deno.test("a short batch at the end is dropped where the pipeline drops remainders", async () => {
  const dataset = Dataset.range(10).batch(4, { dropRemainder: true });
  assertEquals(await orderedReference(dataset), [batchOf([0, 1, 2, 3]), batchOf([4, 5, 6, 7])]);
});

Deno.test("joined batches keep dtypes and go through the operators after the batch", async () => {
  const dataset = Dataset.fromTensorSlices(new Int32Array([1, 2, 3, 4, 5])).filter(() => true)
    .batch(2)
    .map((batch) => ({ batch }));
  const [joined] = await orderedReference(dataset);
  assertEquals(joined, element({ batch: { dtype: "int32", shape: [2], data: [1, 2] } }));
});

Deno.test("rows that wait for a batch of paddedBatch are padded with those of their batch alone", async () => {
  const lengthOf = (x: number) => x === 4 ? 10 : 1;
  for (const spec of [undefined, new TensorSpec("int32", [null])]) {
    const dataset = Dataset.range(1024)
      .filter((x) => x % 4 !== 3)
      .map((x) => Int32Array.from({ length: lengthOf(x) }, () => x + 1), { spec })
      .paddedBatch(4)
      .map((batch) => batch);
    const wanted = Array.from({ length: 1024 }, (_, x) => x).filter((x) => x % 4 !== 3);
    const batches = (await canonicalStream(dataset)).map((given) =>
      (given as { element: Tensor<"int32"> }).element
    );
    assertEquals(batches.length, 192);
    const rows = batches.flatMap(({ shape: [count, length], data }) =>
      Array.from({ length: count! }, (_, i) => data.slice(i * length!, (i + 1) * length!))
    );
    assertEquals(rows.map(([x]) => x! - 1).sort((a, b) => a - b), wanted);
    for (const { shape, data } of batches) {
      const longest = Math.max(...data.filter((x) => x > 0).map((x) => lengthOf(x - 1)));
      assertEquals(shape, [4, longest]);
    }
  }
});

Deno.test("the stream of a shuffled chain differs by seed and epoch and repeats with them", async () => {
  const dataset = Dataset.range(600).shuffle(10).map((x, { random }) => x + random.next() / 2)
    .batch(7);
  const streams = await Promise.all([
    orderedReference(dataset),
    orderedReference(dataset),
    orderedReference(dataset, { epoch: 1 }),
    orderedReference(dataset, { seed: 1n }),
  ]);
  const texts = streams.map((stream) => JSON.stringify(stream));
  assertEquals(texts[0], texts[1]);
  assertEquals(new Set(texts).size, 3);
});

Deno.test("splitOrder is a permutation that depends only on the seed and the epoch", () => {
  const order = splitOrder(100, { seed: 1n, epoch: 2, shuffled: true });
  assertEquals([...order].sort((a, b) => a - b), Array.from({ length: 100 }, (_, i) => i));
  assertEquals(order, splitOrder(100, { seed: 1n, epoch: 2, shuffled: true }));
  assert(String(order) !== String(splitOrder(100, { seed: 1n, epoch: 3, shuffled: true })));
  assertEquals([...splitOrder(3, { seed: 1n, epoch: 0, shuffled: false })], [0, 1, 2]);
});

Deno.test("rows that do not fit cost at most as many others, in joined and in other batches", async () => {
  const stream = await orderedReference(withMisfits());
  const batches = stream.flatMap((at) => "element" in at ? [at.element as Tensor] : []);
  const rows = batches.flatMap(({ data }) => [...data] as unknown as number[][]).map(([x]) => x!);
  assertEquals(stream.length - batches.length, 768 - rows.length, "an error for each other row");
  assertEquals(rows, rows.toSorted((a, b) => a - b));
  const local = (await outcomesOf(withMisfits().iterator())).flatMap((at) =>
    "element" in at ? [at.element as Tensor] : []
  );
  const lost = [rows.length, local.reduce((sum, { shape }) => sum + shape[0]!, 0)]
    .map((kept) => 768 - kept);
  assert(lost.every((rows) => rows <= 2 * 192), `${lost} rows are lost, and 192 are odd`);
  assert(batches.slice(0, -1).every(({ shape }) => shape[0] === 4));
});

Deno.test("an odd row that waits first costs no later rows", async () => {
  for (const size of [2, 4, 5]) {
    const odd = Dataset.range(768).filter((x) => x >= 0)
      .map((x) => new Float32Array(x < 3 ? 3 : 2).fill(x)).batch(size);
    const stream = await orderedReference(odd);
    const batches = stream.flatMap((at) => "element" in at ? [at.element as Tensor] : []);
    const rows = batches.reduce((sum, { shape }) => sum + shape[0]!, 0);
    assertEquals(rows + stream.length - batches.length, 768);
    assert(rows >= 768 - 2 * (3 % size), `${rows} rows in batches of ${size}`);
  }
});

Deno.test("a join restored with the remaining rows continues as before", async () => {
  const chain = chainOf(Dataset.range(9).filter(() => true).batch(4).node)!;
  const tensorOf = async (stop: number) => ({
    batch: (await Array.fromAsync(Dataset.range(stop).batch(4)))[0],
  });
  const all = new RemainderJoin(chain, { seed: 0n });
  all.add(0, 0, await tensorOf(3));
  assertEquals(await all.next(), undefined);
  all.add(1, 1, await tensorOf(3));
  const joined = await all.next();
  assert(joined !== undefined && "element" in joined);
  assertEquals(all.carried, [{ sequence: 1, rows: 2 }]);
  const resumed = new RemainderJoin(chain, { seed: 0n });
  resumed.add(1, 1, await tensorOf(3), { rows: 2 });
  const both = await Promise.all([all, resumed].map(async (join) => {
    join.add(2, 2, await tensorOf(3));
    const next = await join.next();
    return (next as { element: { toArray(): unknown } }).element.toArray();
  }));
  assertEquals(both, [[1, 2, 0, 1], [1, 2, 0, 1]]);
});

Deno.test("a join computes no spec of rows whose spec is unknown", async () => {
  let reads = 0;
  const rows = Array.from({ length: 100 }, () => ({
    get x() {
      reads++;
      return new Int32Array(2);
    },
  }));
  const padded = Dataset.range(100).map((i) => rows[i]!).paddedBatch(100);
  await Array.fromAsync(padded);
  const usual = reads;
  reads = 0;
  const join = new RemainderJoin(chainOf(padded.node)!, { seed: 0n });
  join.add(0, 0, { rows });
  assert("element" in (await join.next())!);
  assert(reads <= usual + rows.length, `${reads}, not ${usual} and one for each row's copy`);
});

Deno.test("a join that is restored drops the same rows", async () => {
  const chain = chainOf(Dataset.range(9).filter(() => true).batch(4).node)!;
  const split = async (rows: number, length: number) => ({
    batch:
      (await Array.fromAsync(Dataset.from(Array(rows).fill(new Int32Array(length))).batch(4)))[0],
  });
  const all = new RemainderJoin(chain, { seed: 0n });
  all.add(0, 0, await split(2, 3));
  all.add(1, 1, await split(2, 2));
  assert("error" in (await all.next())!);
  const [first, second] = all.carried;
  assertEquals([first, second], [{ sequence: 0, rows: 2, refused: 1 }, { sequence: 1, rows: 1 }]);
  const resumed = new RemainderJoin(chain, { seed: 0n });
  resumed.add(0, 0, await split(2, 3), first);
  resumed.add(1, 1, await split(2, 2), second);
  for (const join of [all, resumed]) {
    join.add(2, 2, await split(1, 2));
    assert("error" in (await join.next())!);
    join.add(3, 3, await split(1, 2));
    assert("error" in (await join.next())!);
    assertEquals(join.carried, [
      { sequence: 0, rows: 1, refused: 2 },
      { sequence: 2, rows: 1 },
      { sequence: 3, rows: 1 },
    ]);
  }
});

Deno.test("a function that uses the clock or its own random numbers is refused under DETERMINISTIC, with a remedy", () => {
  const service = "ws://127.0.0.1:1";
  const numbers = Dataset.range(10);
  const cases: [Dataset<unknown>, name: string, operator: string, remedy: string][] = [
    [numbers.map((x) => x + Math.random()).batch(2), "Math.random", "map", "`random` of the last"],
    [numbers.filter((x) => x < Date.now()), "Date", "filter", "in captures"],
    [numbers.map((x) => x + performance.now()), "performance", "map", "in captures"],
    [numbers.map((x) => `${x} ${crypto.randomUUID()}`), "crypto", "map", "`random` of the last"],
    // What runs at the reader is part of the stream as well.
    [
      numbers.take(3).scan(0, (sum, x) => [sum + x, Math.random()]),
      "Math.random",
      "scan",
      "random",
    ],
    [
      numbers.map((x, { jitter }) => x + jitter(), { captures: { jitter: () => Math.random() } }),
      "Math.random",
      "map",
      "`random` of the last",
    ],
  ];
  for (const [dataset, name, operator, remedy] of cases) {
    const error = assertThrows(
      () => dataset.distribute({ service, processingMode: "DETERMINISTIC" }),
      LeatError,
    );
    assertEquals(error.code, "failed_precondition");
    for (const part of [name, operator, remedy]) {
      assert(error.message.includes(part), error.message);
    }
    dataset.distribute({ service, processingMode: "DYNAMIC" });
  }
  numbers.map((x, { random }) => x + random.next()).map((x) => Math.floor(x))
    .distribute({ service, processingMode: "DETERMINISTIC" });
});
