/**
 * Static policies end to end: files, elements, hints and custom policies, divided among a fixed
 * list of workers.
 */
import { Dataset, LeatError, SHARD_HINT, shardingPolicy } from "../../../mod.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { hurried } from "../../data/lib/hurried.ts";
import { outcomesOf } from "../../data/lib/outcomes.ts";
import { numbersOf, sorted, testInline, testOnEach, upTo } from "../lib/carriers.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

const FILES = 7;
const LINES = 20;

/** Seven files of twenty numbers each, from 0 on. */
async function withFiles(use: (pattern: string) => Promise<void>): Promise<void> {
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  for (let file = 0; file < FILES; file++) {
    const numbers = Array.from({ length: LINES }, (_, i) => `${file * LINES + i}\n`);
    await Deno.writeTextFile(`${folder}/${file}.txt`, numbers.join(""));
  }
  await use(`${folder}/*.txt`);
}

testOnEach("FILE, DATA, FILE_OR_DATA and HINT give every element once", async (start) => {
  await using cluster = await start({ workers: 3 });
  await withFiles(async (pattern) => {
    const numbers = Dataset.textLines(Dataset.listFiles(pattern)).map((line) => Number(line))
      .shuffle(10);
    for (const processingMode of ["FILE", "DATA", "FILE_OR_DATA"] as const) {
      const batches = numbers.batch(4).distribute({ service: cluster, processingMode });
      assertEquals(sorted(await numbersOf(batches)), upTo(FILES * LINES), processingMode);
    }
    const hinted = numbers.shard(SHARD_HINT, SHARD_HINT).batch(4);
    const batches = hinted.distribute({ service: cluster, processingMode: "HINT" });
    assertEquals(sorted(await numbersOf(batches)), upTo(FILES * LINES));
  });
});

testOnEach("a policy of a user's own divides the dataset as it says", async (start) => {
  await using cluster = await start({ workers: 3 });
  const processingMode = shardingPolicy("contiguous", {
    shard(dataset, { index, count, length }) {
      const share = Math.ceil(length / count);
      return dataset.skip(index * share).take(share).map(
        (x, { worker }) => (x as number) * 10 + worker,
        {
          captures: { worker: index },
        },
      );
    },
    captures: { length: 7 },
  });
  const numbers = Dataset.range(7).distribute({ service: cluster, processingMode });
  assertEquals(sorted(await Array.fromAsync(numbers)), [0, 10, 20, 31, 41, 51, 62]);
});

/** The last of `count` workers takes the rest, with one operator fewer. */
const rest = shardingPolicy("rest", {
  shard(dataset, { index, count, share }) {
    const from = dataset.skip(index * share);
    return index === count - 1 ? from : from.take(share).withOptions({}).prefetch(1);
  },
  captures: { share: 10 },
});

testOnEach(
  "a policy that adds other operators on each worker divides one order and the same draws",
  async (start) => {
    await using cluster = await start({ workers: 3 });
    const distribution = { service: cluster, processingMode: rest };
    const shuffled = Dataset.range(35).shuffle(35);
    for (const numbers of [shuffled, shuffled.withOptions({ seed: 7 })]) {
      const divided = numbers.distribute(distribution);
      assertEquals(sorted(await Array.fromAsync(divided)), upTo(35));
    }
    const drawn = Dataset.range(70).filter((_, { random }) => random.next() < 0.5)
      .map((x, { random }) => x + random.next()).withOptions({ seed: 7 });
    const alone = sorted(await Array.fromAsync(drawn));
    assertEquals(sorted(await Array.fromAsync(drawn.distribute(distribution))), alone);
  },
);

testInline("a shuffle that a policy adds gives one order whatever follows it", async (start) => {
  await using cluster = await start({ workers: 3 });
  const processingMode = shardingPolicy("shuffled rest", {
    shard(dataset, { index, count, share }) {
      const from = dataset.shuffle(35).skip(index * share);
      return index === count - 1 ? from : from.take(share);
    },
    captures: { share: 10 },
  });
  const divided = Dataset.range(35).distribute({ service: cluster, processingMode });
  assertEquals(sorted(await Array.fromAsync(divided)), upTo(35));
});

testInline(
  "an element that fails under DATA fails once on each worker, and the others come once",
  async (start) => {
    await using cluster = await start({ workers: 3 });
    const numbers = Dataset.range(12).map((x) => {
      if (x === 5) throw new RangeError(`no ${x}`);
      return x;
    });
    const shared = numbers.distribute({ service: cluster, processingMode: "DATA" });
    const outcomes = await outcomesOf(shared.iterator());
    const elements = outcomes.flatMap((outcome) => "element" in outcome ? [outcome.element] : []);
    assertEquals(sorted(elements as number[]), [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11]);
    const errors = outcomes.flatMap((outcome) => "error" in outcome ? [outcome.error] : []);
    assertEquals(
      errors,
      Array(3).fill("unknown: map (operator 1): the function failed at element 5: no 5"),
    );
  },
);

testInline("a policy of a user's own divides a dataset that keeps its order", async (start) => {
  await using cluster = await start({ workers: 2 });
  const processingMode = shardingPolicy("order", {
    shard: ({ node }, { Dataset }) => Dataset.from([node.attributes["deterministic"]]),
  });
  const hurried = Dataset.range(9).map((x) => x, { numParallelCalls: 4, deterministic: false });
  const orders = hurried.distribute({ service: cluster, processingMode });
  assertEquals(await Array.fromAsync(orders as Dataset<unknown>), [true, true]);
});

testInline("HINT keeps the order if withOptions sets deterministic: false", async (start) => {
  await using cluster = await start({ workers: 1 });
  // A call without a promise ends before any that has one.
  const numbers = Dataset.range(6).map((x) => x % 2 === 0 ? Promise.resolve(x) : x, {
    numParallelCalls: 2,
  });
  const hinted = numbers.shard(SHARD_HINT, SHARD_HINT).withOptions({ deterministic: false });
  const shared = hinted.distribute({ service: cluster, processingMode: "HINT" });
  assertEquals(await Array.fromAsync(shared), upTo(6));
});

testInline("DATA keeps the order of datasets that functions make", async (start) => {
  await using cluster = await start({ workers: 1 });
  const numbers = hurried(Dataset.range(3)).distribute({
    service: cluster,
    processingMode: "DATA",
  });
  assertEquals(await Array.fromAsync(numbers), upTo(6));
});

testInline(
  "a pipeline that cannot be sharded as requested is reported once, by one worker",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const one = await Deno.makeTempFile();
    const range = Dataset.range(4);
    const cases = [
      [range, "FILE", "not_found", "Found an unshardable source dataset: range"],
      [Dataset.textLines(one), "FILE", "invalid_argument", "not enough for the required 2 shards"],
      [range.shard(SHARD_HINT, 0), "DATA", "failed_precondition", 'processingMode: "HINT"'],
      [range.shard(SHARD_HINT, 0), "OFF", "failed_precondition", 'processingMode: "HINT"'],
    ] as const;
    for (const [dataset, processingMode, code, message] of cases) {
      const distributed = (dataset as Dataset<unknown>).distribute({
        service: cluster,
        processingMode,
      });
      const outcomes = await outcomesOf(distributed.iterator());
      assertEquals(outcomes.length, 1, message);
      await using iterator = distributed.iterator();
      const error = await assertRejects(() => iterator.next(), LeatError);
      assertEquals(error.code, code);
      assert(error.message.includes(message), error.message);
    }
    await Deno.remove(one);
  },
);

testInline("a worker that is added later has no share, and all elements come", async (start) => {
  await using cluster = await start({ workers: 2 });
  await cluster.addWorker();
  const distribution = { service: cluster, processingMode: "DATA" } as const;
  const endless = Dataset.range(3).repeat().distribute(distribution);
  await using running = endless.iterator();
  await running.next();
  const { workers } = await cluster.describe();
  assertEquals(workers.map(({ noShard }) => noShard === undefined), [true, true, false]);
  const numbers = Dataset.range(30).batch(2).distribute(distribution);
  assertEquals(sorted(await numbersOf(numbers)), upTo(30));
});

testOnEach("the share of a worker that dies starts over when it is back", async (start) => {
  await using cluster = await start({ workers: 2 });
  const numbers = Dataset.range(200).map((x) => x).distribute({
    service: cluster,
    processingMode: "DATA",
    maxOutstandingRequests: 2,
  });
  await using iterator = numbers.iterator();
  const seen: number[] = [];
  // From both workers, in any order.
  while (seen.length < 20 || !seen.includes(1)) seen.push((await iterator.next()).value!);
  await cluster.stopWorker(1);
  await cluster.restartWorker(1);
  for await (const x of iterator) seen.push(x);
  const odd = seen.filter((x) => x % 2 === 1);
  assertEquals(sorted(seen.filter((x) => x % 2 === 0)), upTo(100).map((x) => 2 * x));
  // In the order of its share, up to its death, and then all of it again.
  const restart = odd.lastIndexOf(1);
  assert(restart > 0, `${odd}`);
  assertEquals(odd.slice(restart), upTo(100).map((x) => 2 * x + 1));
});

testOnEach(
  "a share that a graceful stop cuts short starts over, and is not lost",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const numbers = Dataset.range(100).distribute({
      service: cluster,
      processingMode: "DATA",
      maxOutstandingRequests: 2,
    });
    await using iterator = numbers.iterator();
    const seen = new Set([(await iterator.next()).value!]);
    const reading = (async () => {
      for await (const x of iterator) seen.add(x);
    })();
    await cluster.stopWorker(1, { graceful: true });
    await cluster.restartWorker(1);
    await reading;
    assertEquals(sorted([...seen]), upTo(100));
  },
);
