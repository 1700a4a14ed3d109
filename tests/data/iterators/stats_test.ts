/**
 * Statistics per operator, for every kind of node: elements, bytes, samples, time by a test clock,
 * held memory, errors.
 */

import { assert, assertEquals, assertMatch } from "../../assert.ts";
import { byteSize } from "../../../core/tree.ts";
import { tensor } from "../../../core/tensor.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { ImageFolderNode } from "../../../data/sources/image_folder.ts";
import { OperatorMeter } from "../../../data/iterators/stats.ts";
import { Dataset, type IteratorStats } from "../../../mod.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { GREY, writePng } from "../../platform/media/png_writer.ts";
import { failingOn, turn } from "../lib/collect.ts";
import { everyKind } from "../lib/every_kind.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

/** Runs to the end, closes, and returns the elements and statistics. */
async function drain(dataset: Pick<Dataset<unknown>, "node">, host: DenoHost = new DenoHost()) {
  await using iterator = openIterator(dataset.node, { host, seed: 1n });
  const given: unknown[] = [];
  for (;;) {
    try {
      const { done, value } = await iterator.next();
      if (done) break;
      given.push(value);
    } catch {
      // It is among the statistics.
    }
  }
  await iterator.return();
  return { given, stats: iterator.stats(), explanation: iterator.explain() };
}

function sizeOf(element: unknown): number {
  try {
    return byteSize(element);
  } catch {
    return 0; // a dataset
  }
}

function assertNear(found: number, expected: number, part: number, what: string): void {
  assert(Math.abs(found - expected) <= part * expected, `${what}: ${found}, not ${expected}`);
}

/** Holds for every pipeline that was run to its end and closed. */
async function assertFigures(
  name: string,
  dataset: Dataset<unknown>,
  elements: readonly number[],
): Promise<void> {
  const { given, stats, explanation } = await drain(dataset);
  assertEquals(stats.map((at) => at.elements), elements, name);
  assertEquals(given.length, elements[0]);
  const bytes = given.reduce((sum: number, element) => sum + sizeOf(element), 0);
  assertNear(stats[0]!.bytesOut, bytes, 0.1, `bytesOut of ${name}`);
  const { operators } = explanation;
  for (const [i, own] of stats.entries()) {
    if (own.operator !== "cache") assertEquals(own.bufferedBytes, 0, `${name}: ${own.operator}`);
    const readsFiles = "numParallelReads" in dataset.node.attributes || name === "growing";
    if (readsFiles && i === 0) {
      assert(own.bytesIn > 0, `bytesIn of ${name}`);
      continue;
    }
    const below = operators.slice(i + 1);
    const end = below.findIndex(({ depth }) => depth <= operators[i]!.depth);
    const inputs = below.slice(0, end < 0 ? undefined : end)
      .filter(({ depth }) => depth === operators[i]!.depth + 1);
    const sum = inputs.reduce((sum, { stats }) => sum + stats!.bytesOut, 0);
    assertEquals(own.bytesIn, sum, `bytesIn of ${own.operator} in ${name}`);
  }
}

Deno.test("stats of every kind of node count elements and bytes, and hold nothing at the end", async () => {
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  for (const { node, dataset, elements } of await everyKind(folder)) {
    if (elements.length > 0) await assertFigures(node.kind, dataset, elements);
  }
});

Deno.test("bytesOut is exact for elements of one size, and approximate for others, one by one or in blocks", () => {
  const sizes = Array.from({ length: 20_000 }, (_, i) => (i * 7919) % 1000);
  const texts = sizes.map((size) => "x".repeat(size));
  const exact = sizes.reduce((sum, size) => sum + size, 0);
  for (const blockLength of [1, 7, 128, 20_000]) {
    const meter = new OperatorMeter("any", 0);
    const same = new OperatorMeter("any", 0);
    for (let i = 0; i < texts.length; i += blockLength) {
      const block = texts.slice(i, i + blockLength);
      meter.gaveBlock(block, block.length);
      same.gaveBlock(block.map(() => 1), block.length);
    }
    assertEquals([meter.read(0).elements, same.read(0).bytesOut], [20_000, 160_000]);
    assertNear(meter.read(0).bytesOut, exact, 0.1, `blocks of ${blockLength}`);
  }
  const meter = new OperatorMeter("any", 0);
  assertEquals(texts.map((text) => meter.gave(text)), texts);
  assertNear(meter.read(0).bytesOut, exact, 0.1, "one by one");
});

Deno.test("bytesIn of file sources counts the bytes read from files, before decompression", async () => {
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  const text = "a line\n".repeat(5000);
  await Deno.writeTextFile(`${folder}/lines.txt`, text);
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  await Deno.writeFile(`${folder}/lines.txt.gz`, packed);
  const { size } = await Deno.stat(`${folder}/lines.txt.gz`);
  for (const [name, bytesIn] of [["lines.txt", text.length], ["lines.txt.gz", size]] as const) {
    const lines = Dataset.textLines(`${folder}/${name}`, { compression: "auto" });
    assertEquals((await drain(lines)).stats[0]!.bytesIn, bytesIn);
    // Opening the dataset has read it.
    const opened = Dataset.from([`${folder}/${name}`])
      .flatMap((path, { Dataset }) => Dataset.textLines(path, { compression: "auto" }));
    const [flatMap, from] = (await drain(opened)).stats;
    assertEquals(flatMap!.bytesIn, bytesIn + from!.bytesOut);
  }
});

/** A host whose clock moves only when a test moves it. */
class StillHost extends DenoHost {
  ms = 0;
  override nowMs(): number {
    return this.ms;
  }
}

/** The `selfMs` and `waitMs` of each operator. */
function times(stats: IteratorStats): [number, number][] {
  return stats.map(({ selfMs, waitMs }) => [selfMs, waitMs]);
}

Deno.test("selfMs is the time of functions, in every operator", async () => {
  const host = new StillHost();
  const slow = <T>(value: T): T => {
    host.ms += 5;
    return value;
  };
  const ten = Dataset.range(10);
  const pipelines: Record<string, [Dataset<unknown>, number]> = {
    map: [ten.map((x) => slow(x)), 50],
    filter: [ten.filter((x) => slow(x) > 3), 50],
    "parallel map": [ten.map((x) => slow(x), { numParallelCalls: 4 }), 50],
    scan: [ten.scan(0, (sum, x) => [sum, slow(x)]), 50],
    takeWhile: [ten.takeWhile((x) => slow(x) < 4), 25],
    groupByWindow: [
      ten.groupByWindow({
        key: (x) => slow(x) % 2,
        reduce: (_key, window) => window,
        windowSize: 2,
      }),
      50,
    ],
    fromGenerator: [
      Dataset.fromGenerator(function* () {
        for (let i = 0; i < 10; i++) yield slow(i);
      }),
      50,
    ],
    "a map within interleave": [
      Dataset.range(2).interleave((_x, { Dataset }) => Dataset.range(5).map((x) => slow(x))),
      50,
    ],
    "a map below globalShuffle": [ten.map((x) => slow(x)).globalShuffle().batch(5), 50],
  };
  for (const [name, [dataset, ms]] of Object.entries(pipelines)) {
    const { stats } = await drain(dataset, host);
    assertEquals(stats.reduce((sum, { selfMs }) => sum + selfMs, 0), ms, name);
    if (!name.includes("below")) assertEquals(stats[0]!.selfMs, ms, name);
  }
});

Deno.test("waitMs is the operator's own time waiting for inputs", async () => {
  const host = new StillHost();
  const later = async (x: number) => {
    await turn();
    host.ms += 3;
    return x;
  };
  const input = Dataset.range(4).map(later);
  const over: Record<string, Dataset<unknown>> = {
    batch: input.batch(2),
    cache: input.cache(),
    concatenate: input.concatenate(Dataset.range(1)),
    enumerate: input.enumerate(),
    flatMap: Dataset.range(1).flatMap((_x, { Dataset }) => Dataset.range(4).map(later)),
    globalShuffle: input.globalShuffle(),
    interleave: Dataset.range(1).interleave((_x, { Dataset }) => Dataset.range(4).map(later)),
    prefetch: input.prefetch(1),
    repeat: input.repeat(1),
    sampleFromDatasets: Dataset.sampleFromDatasets([input]),
    shuffle: input.shuffle(2),
    takeWhile: input.takeWhile(() => true),
    zip: Dataset.zip([input, Dataset.range(4)]),
  };
  for (const [name, dataset] of Object.entries(over)) {
    const { stats } = await drain(dataset, host);
    assertEquals(times(stats)[0], [0, 12], name);
    assertEquals(stats.slice(1).every(({ waitMs }) => waitMs === 0), true, name);
  }
});

Deno.test("explain names the input that was waited for, if an operator has others or opens datasets", async () => {
  const host = new StillHost();
  const later = async (x: number) => {
    await turn();
    host.ms += 30;
    return x;
  };
  const waits = Dataset.range(20).map(later);
  // It takes thread time in all, but nobody waits for a promise of it.
  const works = Dataset.range(20).map((x) => {
    host.ms += 1;
    return x;
  });
  const cases: [Dataset<unknown>, number][] = [
    [Dataset.zip([works, waits]), 3],
    [Dataset.zip([waits, works]), 1],
    [Dataset.sampleFromDatasets([works, waits], { seed: 1 }), 3],
    [works.concatenate(waits), 3],
    [waits.cache(), 1],
    [waits.flatMap((_, { Dataset }) => Dataset.range(3)), 1],
    [waits.interleave((_, { Dataset }) => Dataset.range(3)), 1],
    [
      waits.groupByWindow({
        key: () => 0,
        windowSize: 4,
        reduce: (_key, window) => window.batch(4),
      }),
      1,
    ],
  ];
  for (const [dataset, number] of cases) {
    await using iterator = openIterator(dataset.node, { host });
    for await (const _ of iterator);
    const explained = iterator.explain();
    assertMatch(
      explained.advice.at(-1)!,
      new RegExp(`^map \\(operator ${number}\\) is waited for`),
      String(explained),
    );
  }
});

Deno.test("for file sources waitMs is the time of reads, and selfMs that of decoding", async () => {
  class FarHost extends StillHost {
    override files = {
      list: () => Promise.resolve([]),
      open: (path: string) => {
        this.ms += 100;
        const bytes = writePng({ width: 4, height: 4, depth: 8, colour: GREY, at: () => 9 });
        return Promise.resolve({
          path,
          sizeBytes: bytes.length,
          read: async (into: Uint8Array, offset: number) => {
            await turn();
            this.ms += 10;
            const part = bytes.subarray(offset, offset + into.length);
            into.set(part);
            return part.length;
          },
          close() {},
        });
      },
    };
    override images = {
      size: () => ({ width: 4, height: 4 }),
      decode: async () => {
        await turn();
        this.ms += 7;
        return tensor([[[9]]], { dtype: "uint8" });
      },
    };
  }
  const paths = Dataset.from(["/images/a/1.png", "/images/a/2.png"]);
  for (const numParallelReads of [1, 2]) {
    const node = new ImageFolderNode(
      "/images",
      { classNames: ["a"], numParallelReads },
      paths.node,
    );
    const { stats } = await drain({ node }, new FarHost());
    assertEquals([stats[0]!.elements, stats[0]!.errors], [2, 0]);
    if (numParallelReads > 1) continue; // which of them a moment belongs to is an estimate
    assertEquals(times(stats)[0], [14, 20]);
  }
});

Deno.test("a cache in memory holds its elements in every pass, one of a function while it is read", async () => {
  const cached = Dataset.range(200).map(() => new Float64Array(10)).cache();
  const held = async (dataset: Dataset<unknown>) => {
    const { stats } = await drain(dataset);
    return stats.map(({ bufferedBytes }) => bufferedBytes);
  };
  for (const dataset of [cached, cached]) assertEquals(await held(dataset), [16_000, 0, 0]);
  assertEquals(await held(cached.repeat(3)), [0, 16_000, 0, 0]);
  const repeated = Dataset.range(3).flatMap((_, { Dataset }) =>
    Dataset.range(2).map(() => new Float64Array(10)).cache().repeat(2)
  );
  assertEquals(await held(repeated), [0, 0]);
  await using iterator = repeated.iterator();
  for (let i = 0; i < 7; i++) await iterator.next();
  assertEquals(iterator.stats()[0]!.bufferedBytes, 160);
});

Deno.test("elements of a cache count once in an iteration, however many iterators give them", async () => {
  const cached = Dataset.range(200).map(() => new Float64Array(10)).cache();
  const heldAfter = async (dataset: Dataset<unknown>, elements: number) => {
    await using iterator = dataset.iterator();
    for (let i = 0; i < elements; i++) await iterator.next();
    const held = () => iterator.stats().reduce((sum, { bufferedBytes }) => sum + bufferedBytes, 0);
    const open = held();
    await iterator.return();
    return [open, held()];
  };
  assertEquals(await heldAfter(cached.concatenate(cached), 401), [16_000, 16_000]);
  assertEquals(await heldAfter(Dataset.zip([cached, cached.skip(1)]), 200), [16_000, 16_000]);
  const captures = { cached };
  const slices = Dataset.range(9).interleave(
    (n, { cached }) => cached.take(1 + Number(n)),
    { captures, cycleLength: 4 },
  );
  // The first of them ends before the others.
  for (const elements of [4, 7, 20, 40]) {
    assertEquals(await heldAfter(slices, elements), [16_000, 0], `${elements}`);
  }
  assertEquals(await heldAfter(slices, 46), [0, 0]);
});

Deno.test("errors are counted where they arise, once", async () => {
  const failing = Dataset.range(9).map(failingOn(2, 5));
  const counts = async (dataset: Dataset<unknown>) =>
    (await drain(dataset)).stats.map(({ errors }) => errors);
  assertEquals(await counts(failing.shuffle(3).batch(2)), [0, 0, 2, 0]);
  assertEquals(await counts(failing.ignoreErrors().map((x) => x)), [0, 2, 2, 0]);
  assertEquals(await counts(Dataset.from([1, [2], 3, 4]).batch(2)), [1, 0]);
  assertEquals(await counts(Dataset.from([new Int8Array(1), 2]).unbatch()), [1, 0]);
  assertEquals(await counts(Dataset.from([{}, 1]).unique()), [1, 0]);
  const lostMemory = Dataset.range(3).map((x) => {
    const array = Float32Array.of(x);
    if (x === 1) structuredClone(array, { transfer: [array.buffer] });
    return array;
  }).cache();
  for (const _pass of [0, 1]) assertEquals(await counts(lostMemory), [1, 0, 0]);
  assertEquals(await counts(Dataset.textLines(["/nowhere/1", "/nowhere/2"]).batch(2)), [0, 2, 0]);
  const buckets = {
    ...{ length: (x: Int8Array) => x.length, boundaries: [2], batchSizes: [1, 1] },
    padToBucketBoundary: true,
  };
  const arrays = Dataset.from([new Int8Array(1), new Int8Array(2), new Int8Array(1)]);
  assertEquals(await counts(arrays.bucketBySequenceLength(buckets)), [1, 0]);
  for (const key of [failingOn(2), (x: number) => x === 2 ? 0.5 : 0]) {
    for (const isLater of [false, true]) {
      const grouped = Dataset.range(4).groupByWindow({
        key: (x) => isLater ? Promise.resolve(x).then(key) : key(x),
        windowSize: 1,
        reduce: (_key, window) => window.batch(2),
      });
      assertEquals(await counts(grouped), [1, 0]);
    }
  }
  const [numbers, choices] = [Dataset.range(5), Dataset.from([0, 7, 1])];
  const chosen = Dataset.chooseFromDatasets([numbers, numbers], choices);
  assertEquals(await counts(chosen), [1, 0, 0, 0]);
  const lost = Dataset.chooseFromDatasets(
    [numbers],
    Dataset.range(2).map(failingOn(0)).map(() => 0),
  );
  assertEquals(await counts(lost), [0, 0, 0, 1, 0]);
  const weights = Dataset.from([[1, 1], [-1, 0], [1, 0]]);
  const sampled = Dataset.sampleFromDatasets([numbers, numbers], { weights });
  assertEquals(await counts(sampled), [1, 0, 0, 0]);
  const within = Dataset.range(1).flatMap((_x, { Dataset }) =>
    Dataset.range(3).map((x) => {
      if (x === 1) throw new Error("no");
      return x;
    })
  );
  assertEquals(await counts(within), [1, 0]);
});
