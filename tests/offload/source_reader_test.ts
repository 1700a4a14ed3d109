/** p'1: this host reads the source, workers prepare its elements. */
import { LeatError } from "../../core/error.ts";
import { openIterator } from "../../data/dataset_iterator.ts";
import { ReadingFailure } from "../../data/iterators/reading_failure.ts";
import { Dataset, LocalCluster, offloadProgress, planOffload } from "../../mod.ts";
import { SourceReader } from "../../offload/conditional/source_reader.ts";
import { decodeMessage } from "../../transport/codec.ts";
import { assert, assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { outcomesOf } from "../data/lib/outcomes.ts";
import { TempFolder } from "../lib/temp_folder.ts";
import { testInline, testOnEach } from "../service/lib/carriers.ts";

const PLAN = { candidate: "p'1", ratio: 0.5 };

/** Random functions above the source, which must give the same on both sides. */
function pipelineOver(source: Dataset<number>) {
  return source.shuffle(5)
    .map((x, { random }) => {
      if (x % 50 === 7) throw new Error(`no ${x}`);
      return x + random.next() / 2;
    })
    .batch(5);
}

testOnEach("offload with p'1 gives what the pipeline gives, whoever prepares it", async (start) => {
  await using cluster = await start({ workers: 2 });
  const pipeline = pipelineOver(Dataset.from(Array.from({ length: 400 }, (_, i) => i)));
  const dataset = pipeline.offload({ service: cluster, plan: PLAN, deterministic: true });
  const given = await outcomesOf(dataset.iterator());
  const { local, remote, fallbacks } = offloadProgress(dataset);
  assertEquals(fallbacks, 0);
  assert(local.elements > 50 && remote.elements > 50);
  const here = pipeline.offload({
    service: cluster,
    plan: { candidate: "p'2", ratio: 0.01 },
    deterministic: true,
  });
  assertEquals(given, await outcomesOf(here.iterator()));
});

testInline("offload looks at data in memory once for all epochs", async (start) => {
  await using service = await start({ workers: 1 });
  const source = Dataset.from([1, 2, 3, 4]);
  const { attributes } = source.node;
  let reads = 0;
  Object.defineProperty(source.node, "attributes", { get: () => (reads++, attributes) });
  const dataset = source.map((x) => x).batch(2).offload({ service, plan: PLAN });
  const readsPerEpoch: number[] = [];
  for (let epoch = 0; epoch < 3; epoch++) {
    const before = reads;
    await outcomesOf(dataset.iterator());
    readsPerEpoch.push(reads - before);
  }
  assert(readsPerEpoch[0]! > 0);
  assertEquals(readsPerEpoch.slice(1), [0, 0]);
});

Deno.test("offload with p'1 reads files that workers cannot see, and a plan offers no other candidate", async () => {
  await using folder = await TempFolder.make();
  const lines = Array.from({ length: 3_000 }, (_, i) => `line ${i} ${"x".repeat(i % 700)}`);
  const paths = [0, 1, 2].map((i) => `${folder.path}/${i}.txt`);
  for (const [i, path] of paths.entries()) {
    await Deno.writeTextFile(path, lines.slice(1_000 * i, 1_000 * i + 1_000).join("\n"));
  }
  // Its processes may read no folder.
  await using service = await LocalCluster.start({
    workers: 1,
    carrier: "websocket",
    confine: true,
  });
  const pipeline = Dataset.textLines(paths).map((line) => line.length).batch(10);
  await Deno.mkdir(`${folder.path}/images`);
  for (let i = 0; i < 50; i++) await Deno.writeTextFile(`${folder.path}/images/${i}.jpg`, "");
  const listed = Dataset.imageFolder(folder.path, { decode: false }).map(({ label }) => label)
    .batch(1);
  for (const [what, dataset] of [["its elements", pipeline], ["the service", listed]] as const) {
    const { metrics, refused } = await planOffload(dataset, { service, profileSteps: 3 });
    assertEquals(metrics.candidates.map(({ name }) => name), ["p'1"]);
    const why = `${what} failed while it was measured: permission_denied: Cannot`;
    assertEquals(refused.length, 2);
    for (const reason of refused) assertMatch(reason, new RegExp(`^p'[23]: ${why}`));
  }
  const dataset = pipeline.offload({ service, plan: PLAN });
  let sum = 0;
  for await (const batch of dataset) for (const x of batch.data) sum += Number(x);
  assertEquals(sum, lines.reduce((sum, { length }) => sum + length, 0));
  const { remote, fallbacks } = offloadProgress(dataset);
  assertEquals(fallbacks, 0);
  assert(remote.elements > 0);
});

testInline("offload with p'1 falls back when this host cannot read for workers", async (start) => {
  await using folder = await TempFolder.make();
  const path = `${folder.path}/lines.txt`;
  await Deno.writeTextFile(path, "one\ntwo\n");
  await using service = await start({ workers: 1 });
  const dataset = Dataset.textLines([path, `${folder.path}/none.txt`]).map((line) => line.length)
    .offload({ service, plan: PLAN });
  const outcomes = await outcomesOf(dataset.iterator());
  assertEquals(outcomes.filter((at) => "element" in at).length, 2);
  assertEquals(outcomes.filter((at) => "error" in at).length, 1);
});

Deno.test("SourceReader continues a split, begins it again, and tells of elements that failed", async () => {
  let opened = 0;
  const numbers = Dataset.range(600).map((x) => {
    if (x === 2) throw new Error("no 2");
    return x;
  });
  const reader = new SourceReader(() => {
    opened++;
    return openIterator(numbers.node);
  });
  const read = async (from: number) => {
    const { given } = await reader.read(0, from);
    return decodeMessage(given.bytes) as { items: Record<string, unknown>[]; isLast: boolean };
  };
  const first = await read(0);
  assertEquals(first.items.slice(0, 2), [{ element: 0 }, { element: 1 }]);
  assert("error" in first.items[2]!);
  const second = await read(first.items.length);
  assertEquals(second.items[0], { element: first.items.length });
  assertEquals(opened, 1);
  assertEquals(await read(0), first);
  const last = await read(598);
  assertEquals([last.items.length, last.isLast], [2, true]);
  assertEquals(opened, 2);
  reader.dispose();
  await assertRejects(() => reader.read(0, 0));
});

/** A reader of splits of 3 elements, each of which takes a turn of the event loop. */
function readerOfSlowSplits(): SourceReader {
  return new SourceReader((split) => {
    const slow = Dataset.range(3).map(async (x) => {
      await new Promise((resolve) => setTimeout(resolve));
      return 10 * split + x;
    });
    return openIterator(slow.node);
  });
}

async function readItems(reader: SourceReader, split: number, from: number) {
  const { given } = await reader.read(split, from);
  return decodeMessage(given.bytes) as { items: { element: number }[]; isLast: boolean };
}

/** Reads a split to its end, as a task does. */
async function readSplit(reader: SourceReader, split: number): Promise<number[]> {
  const elements: number[] = [];
  for (;;) {
    const { items, isLast } = await readItems(reader, split, elements.length);
    elements.push(...items.map(({ element }) => element));
    if (isLast) return elements;
  }
}

const slowSplit = (split: number) => [0, 1, 2].map((x) => 10 * split + x);

Deno.test("SourceReader gives all of each split, however many are read at once", async () => {
  const reader = readerOfSlowSplits();
  const splits = Array.from({ length: 65 }, (_, split) => split);
  const read = await Promise.all(splits.map((split) => readSplit(reader, split)));
  assertEquals(read, splits.map(slowSplit));
  reader.dispose();
});

Deno.test("SourceReader gives all of a split to requests that wait for an earlier one", async () => {
  const reader = readerOfSlowSplits();
  const splits = [0, 0, ...Array.from({ length: 64 }, (_, i) => i + 1)];
  const read = await Promise.all(splits.map((split) => readSplit(reader, split)));
  assertEquals(read, splits.map(slowSplit));
  reader.dispose();
});

Deno.test("SourceReader reads a split again after a failure of reading", async () => {
  let opened = 0;
  const reader = new SourceReader(() => {
    opened++;
    let failures = opened === 1 ? 1 : 0;
    const results = failures > 0 ? [] : [0, 1].map((value) => ({ done: false, value }));
    return {
      next: () =>
        failures-- > 0
          ? Promise.reject(ReadingFailure.of(new LeatError("unavailable", "no disk")))
          : Promise.resolve(results.shift() ?? { done: true, value: undefined }),
      return: () => Promise.resolve(),
    } as unknown as ReturnType<typeof openIterator>;
  });
  const [failed, again] = [reader.read(0, 0), reader.read(0, 0)];
  await assertRejects(() => failed, LeatError, "no disk");
  const { items, isLast } = decodeMessage((await again).given.bytes) as {
    items: unknown[];
    isLast: boolean;
  };
  assertEquals([items, isLast], [[{ element: 0 }, { element: 1 }], true]);
});

Deno.test("SourceReader never tells of a split's end because it was disposed", async () => {
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const { promise: bothBegan, resolve: begin } = Promise.withResolvers<void>();
  let begun = 0;
  const reader = new SourceReader(() => {
    const waiting = Dataset.range(3).map(async (x) => {
      if (++begun === 2) begin();
      await held;
      return x;
    });
    return openIterator(waiting.node);
  });
  const reads = [reader.read(0, 0), reader.read(0, 0), reader.read(1, 0)];
  const settled = Promise.allSettled(reads);
  await bothBegan;
  reader.dispose();
  release();
  for (const answer of await settled) {
    assert(answer.status === "rejected");
    assertEquals(LeatError.from(answer.reason).code, "cancelled");
  }
});

Deno.test("SourceReader keeps more splits open when more are read in turn", async () => {
  let opened = 0;
  const reader = new SourceReader(() => {
    opened++;
    return openIterator(Dataset.range(1_000).node);
  });
  const from = Array.from({ length: 70 }, () => 0);
  for (let round = 0; round < 3; round++) {
    for (const [split, start] of from.entries()) {
      const { items } = await readItems(reader, split, start);
      assertEquals(items[0]!.element, start);
      from[split] = start + items.length;
    }
  }
  // The 6 that were evicted in the first round are opened again once.
  assertEquals(opened, 76);
  reader.dispose();
});
