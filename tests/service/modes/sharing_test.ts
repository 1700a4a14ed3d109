/**
 * Ephemeral data sharing, end to end (paper section 3.5). Tests that depend on the carrier run on
 * each of them.
 */
import {
  Dataset,
  type DistributeOptions,
  LeatError,
  type LocalCluster,
  registerDataset,
} from "../../../mod.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../../assert.ts";
import { testInline, testOnEach } from "../lib/carriers.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { until } from "../../lib/until.ts";

type Trained = { readonly x: number; readonly ballast: Uint8Array };

function trainer(
  service: LocalCluster,
  trainerId: string,
  options: Partial<DistributeOptions> = {},
) {
  return Dataset.range(1_000_000).repeat().map((x): Trained => ({
    x,
    ballast: new Uint8Array(1_000),
  })).distribute({ service, jobName: "shared", sharing: { trainerId }, ...options }).iterator();
}

type Trainer = ReturnType<typeof trainer>;

/** The next elements of a trainer's streams. */
async function take(reader: Trainer, count: number): Promise<number[]> {
  const taken: number[] = [];
  while (taken.length < count) taken.push((await reader.next()).value!.x);
  return taken;
}

/** The dispatcher's statistics of the windows of all jobs. */
async function windowsOf(cluster: LocalCluster) {
  const { jobs } = await cluster.describe();
  return jobs.flatMap(({ iterations }) =>
    iterations.flatMap(({ tasks }) => tasks.flatMap(({ figures }) => figures?.sharing ?? []))
  );
}

async function sourceOf(cluster: LocalCluster, role: "task" | "cache") {
  return (await cluster.sources()).find((source) => source.role === role)!;
}

testOnEach("trainers that share see one stream, produced once", async (start) => {
  await using cluster = await start({ workers: 1 });
  await using a = trainer(cluster, "a");
  await using b = trainer(cluster, "b");
  const seen: { a: number[]; b: number[] } = { a: [], b: [] };
  for (let i = 0; i < 40; i++) {
    seen.a.push((await a.next()).value!.x);
    seen.b.push((await b.next()).value!.x);
  }
  assertEquals(seen.a, Array.from({ length: 40 }, (_, i) => i));
  assertEquals(seen.b, seen.a);
  const task = await sourceOf(cluster, "task");
  assert(task.produced < 80, `${task.produced} elements for two trainers`);
});

testOnEach("a fast trainer never waits for one that does not read", async (start) => {
  await using cluster = await start({ workers: 1, windowBytesMax: 20_000 });
  await using slow = trainer(cluster, "slow");
  await using fast = trainer(cluster, "fast");
  assertEquals(await take(slow, 1), [0]);
  const seen = await take(fast, 500);
  assertEquals(seen, seen.toSorted((a, b) => a - b));
  const cache = await sourceOf(cluster, "cache");
  assert(cache.bufferedBytes <= 20_000, `the window holds ${cache.bufferedBytes} bytes`);
  // The slow trainer's prefetched elements are old; then it continues at the back of the window.
  const late = await take(slow, 40);
  assert(late.at(-1)! > 300, `the slow trainer reads on at ${late.at(-1)}`);
});

testOnEach("an iterator says how many elements its trainer has missed", async (start) => {
  await using cluster = await start({ workers: 1, windowBytesMax: 20_000 });
  await using slow = trainer(cluster, "slow", { maxOutstandingRequests: 1 });
  await using fast = trainer(cluster, "fast");
  const skippedOf = (reader: Trainer) => reader.stats()[0]!.skipped;
  assertEquals(await take(slow, 1), [0]);
  assertEquals(skippedOf(slow), 0);
  await take(fast, 200);
  const [, last = 0] = await take(slow, 2);
  assert(last > 100);
  assertEquals([skippedOf(slow), skippedOf(fast)], [last - 2, 0]);
  assert(String(slow.explain()).includes(`${last - 2} missed`), String(slow.explain()));
});

testOnEach("64 trainers read one job, and a batch is made once for all of them", async (start) => {
  await using cluster = await start({ workers: 1 });
  const trainers = Array.from({ length: 64 }, (_, i) => trainer(cluster, `${i}`));
  const seen = await Promise.all(trainers.map((reader) => take(reader, 10)));
  for (const one of seen) assertEquals(one, seen[0]!.map((_, i) => i + one[0]!));
  const [task, cache] = [await sourceOf(cluster, "task"), await sourceOf(cluster, "cache")];
  // A client prefetches a little.
  assert(task.produced <= 64, `${task.produced} elements`);
  assert(cache.served >= 640, `${cache.served} elements given`);
  assertEquals(cache.sharing!.trainers, 64);
  await Promise.all(trainers.map((reader) => reader.return()));
});

testInline("a trainer that joins late starts with the oldest of the window", async (start) => {
  await using cluster = await start({ workers: 1, windowBytesMax: 64_000 });
  await using early = trainer(cluster, "early");
  const newest = (await take(early, 300)).at(-1)!;
  await using late = trainer(cluster, "late");
  const [first = 0] = await take(late, 1);
  assert(newest - 64 < first && first < newest, `it starts with ${first}, behind ${newest}`);
  assertEquals(late.stats()[0]!.skipped, 0, "what came before it did, it has not missed");
  const { sharing } = await sourceOf(cluster, "cache");
  assert(sharing!.hits > 0 && sharing!.elements <= 64_000 / 1_024, JSON.stringify(sharing));
});

testInline("a trainer that comes back under its id goes on where it was", async (start) => {
  await using cluster = await start({ workers: 1 });
  await using keeper = trainer(cluster, "keeper");
  await take(keeper, 50);
  const options = { maxOutstandingRequests: 1 };
  const before = trainer(cluster, "t", options);
  assertEquals(await take(before, 10), Array.from({ length: 10 }, (_, i) => i));
  await before.return();
  await using after = trainer(cluster, "t", options);
  const [first = 0] = await take(after, 1);
  // Elements in transit to the first are lost with it.
  assert(10 <= first && first <= 12, `it goes on at ${first}`);
});

testInline("under a static policy each window holds the share of one worker", async (start) => {
  await using cluster = await start({ workers: 2 });
  await using early = trainer(cluster, "early", { processingMode: "DATA" });
  await using late = trainer(cluster, "late", { processingMode: "DATA" });
  for (const reader of [early, late]) {
    const shares: [number[], number[]] = [[], []];
    while (shares.some((share) => share.length < 10)) {
      const [x = 0] = await take(reader, 1);
      shares[x % 2 === 0 ? 0 : 1].push(x);
    }
    shares.forEach((share, worker) => assertEquals(share, share.map((_, i) => 2 * i + worker)));
  }
});

testInline("two that read under one id divide what one would have had", async (start) => {
  await using cluster = await start({ workers: 1 });
  await using one = trainer(cluster, "t");
  await using other = trainer(cluster, "t");
  const seen: number[] = [];
  for (let i = 0; i < 20; i++) {
    for (const reader of [one, other]) seen.push(...await take(reader, 1));
  }
  assertEquals(new Set(seen).size, 40);
});

testInline(
  "a worker that is lost takes its window along, and the trainers go on",
  async (start) => {
    await using cluster = await start({ workers: 2, workerTimeoutMs: 10_000 });
    await using a = trainer(cluster, "a");
    await using b = trainer(cluster, "b");
    for (const reader of [a, b]) await take(reader, 100);
    await cluster.stopWorker(0);
    for (const reader of [a, b]) await take(reader, 100);
    await cluster.restartWorker(0);
    // Its new window begins with the beginning of the dataset.
    for (const reader of [a, b]) while ((await take(reader, 1))[0] !== 0);
    const caches = (await cluster.sources()).filter(({ role }) => role === "cache");
    assertEquals(caches.length, 2);
  },
);

testInline("windows do not notice that the dispatcher goes and comes back", async (start) => {
  await using temporary = await TempFolder.make();
  const journal = temporary.path;
  await using cluster = await start({ workers: 1, journal });
  await using a = trainer(cluster, "a");
  await take(a, 20);
  await cluster.stopDispatcher();
  assertEquals((await take(a, 20))[0], 20);
  await cluster.restartDispatcher();
  assertEquals((await take(a, 20))[0], 40);
  await using b = trainer(cluster, "b");
  assertEquals((await take(b, 1))[0], 0, "it is the window of before");
});

testInline("the windows of a worker's jobs divide what it has for them", async (start) => {
  await using cluster = await start({ workers: 1, windowBytesMax: 100_000, jobGcTimeoutMs: 20 });
  await using one = trainer(cluster, "t", { jobName: "one" });
  await take(one, 200);
  const untilDivided = (...sizes: number[]) =>
    until(async () => {
      const windows = await windowsOf(cluster);
      const held = windows.reduce((sum, { windowBytes }) => sum + windowBytes, 0);
      assert(held <= 100_000, `${held} bytes in all`);
      return windows.map(({ windowBytesMax }) => windowBytesMax).join() === sizes.join();
    });
  await untilDivided(100_000);
  const other = trainer(cluster, "t", { jobName: "other" });
  await take(other, 200);
  await untilDivided(50_000, 50_000);
  await other.return();
  await untilDivided(100_000);
});

testInline(
  "windows of more jobs than a worker has memory for keep one element, and report its error to each",
  async (start) => {
    await using cluster = await start({ workers: 1, windowBytesMax: 1 });
    await using one = trainer(cluster, "t", { jobName: "one" });
    await using other = trainer(cluster, "t", { jobName: "other" });
    for (let i = 0; i < 20; i++) {
      for (const reader of [one, other]) {
        await assertRejects(() => reader.next(), LeatError, "windowBytesMax of 1 bytes");
      }
    }
    const windows = (await cluster.sources()).flatMap(({ sharing }) => sharing ?? []);
    assertEquals(windows.map(({ windowBytesMax, elements }) => [windowBytesMax, elements]), [
      [1, 1],
      [1, 1],
    ]);
  },
);

testInline(
  "an element larger than all windows of a worker is an error of its own, with the remedy",
  async (start) => {
    await using cluster = await start({ workers: 1, windowBytesMax: 2_000 });
    await using iterator = Dataset.range(10).repeat().map((x) =>
      new Uint8Array(x === 0 ? 3_000 : 10)
    )
      .distribute({ service: cluster, jobName: "j", sharing: { trainerId: "t" } }).iterator();
    const error = await assertRejects(() => iterator.next(), LeatError, "windowBytesMax");
    assertEquals(error.code, "invalid_argument");
    assert(/3\d{3} bytes .* windowBytesMax of 2000 bytes/.test(error.message), error.message);
    assertEquals((await iterator.next()).value!.length, 10);
  },
);

testInline("sharing a finite dataset is refused with the remedy", async (start) => {
  await using cluster = await start({ workers: 1 });
  const shared = { jobName: "j", sharing: { trainerId: "t" } };
  const share = { service: cluster, ...shared };
  const finite = [
    [Dataset.range(10), "10 elements"],
    [Dataset.range(10).filter((x) => x > 3), "an unknown number of elements"],
  ] as const;
  for (const [dataset, size] of finite) {
    const datasetId = await registerDataset(cluster, dataset);
    for (const one of [dataset.distribute(share), Dataset.fromId(cluster, datasetId, shared)]) {
      const error = await assertRejects(() => one.iterator().next(), LeatError, size);
      assert(error.code === "invalid_argument" && error.message.includes(".repeat()"), `${error}`);
    }
  }
});

testInline(
  "a second iterator of one dataset is refused: a shared stream is not repeated",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const share = { service: cluster, jobName: "j", sharing: { trainerId: "t" } };
    const endless = Dataset.range(10).repeat().distribute(share);
    await using once = endless.iterator();
    await once.next();
    await using again = endless.iterator();
    const error = await assertRejects(() => again.next(), LeatError, "repetition 1");
    assertEquals(error.code, "invalid_argument");
  },
);

testInline("a job is shared by all of its clients or by none", async (start) => {
  await using cluster = await start({ workers: 1 });
  const endless = Dataset.range(10).repeat();
  const sharing = { trainerId: "t" };
  for (const [first, second] of [[{ sharing }, {}], [{}, { sharing }]]) {
    const options = { service: cluster, jobName: `${"sharing" in first!}` };
    await using one = endless.distribute({ ...options, ...first }).iterator();
    await one.next();
    await using other = endless.distribute({ ...options, ...second }).iterator();
    const error = await assertRejects(() => other.next(), LeatError, "other parameters");
    assert(/sharing: (true|false).*sharing: (?!\1)/.test(error.message), error.message);
  }
});

Deno.test("sharing without a trainer, a job's name, or with rounds is refused at once", () => {
  const endless = Dataset.range(10).repeat();
  const service = "ws://127.0.0.1:1";
  const wrong = [
    [{ jobName: "j", sharing: { trainerId: "" } }, "trainerId"],
    [{ jobName: "j", sharing: {} as { trainerId: string } }, "trainerId"],
    [{ sharing: { trainerId: "t" } }, "jobName"],
    [{ jobName: "j", sharing: { trainerId: "t" }, consumerIndex: 0, numConsumers: 2 }, "not both"],
  ] as const;
  for (const [options, what] of wrong) {
    for (
      const make of [
        () => endless.distribute({ service, ...options }),
        () => Dataset.fromId(service, "d", options),
      ]
    ) assertEquals(assertThrows(make, LeatError, what).code, "invalid_argument");
  }
});

testInline("trainers of jobs of different names share nothing", async (start) => {
  await using cluster = await start({ workers: 1 });
  for (const jobName of ["one", "other"]) {
    await using reader = trainer(cluster, "t", { jobName });
    assertEquals((await take(reader, 5))[0], 0);
  }
});

testInline("clients of a job that does not share divide its elements", async (start) => {
  await using cluster = await start({ workers: 1 });
  const endless = () =>
    Dataset.range(1_000_000).repeat().distribute({ service: cluster, jobName: "j" }).iterator();
  await using one = endless();
  await using other = endless();
  const seen: number[] = [];
  for (let i = 0; i < 20; i++) {
    for (const reader of [one, other]) seen.push((await reader.next()).value!);
  }
  assertEquals(new Set(seen).size, 40);
});

testInline("trainers share what is shuffled, sharded and compressed", async (start) => {
  await using cluster = await start({ workers: 2 });
  const open = (trainerId: string) =>
    Dataset.range(10_000).shuffle(100).repeat().distribute({
      service: cluster,
      jobName: "j",
      processingMode: "DYNAMIC",
      compression: "gzip",
      sharing: { trainerId },
    }).iterator();
  await using one = open("one");
  await using other = open("other");
  const seen: [number[], number[]] = [[], []];
  for (let i = 0; i < 200; i++) {
    for (const [at, reader] of [one, other].entries()) seen[at]!.push((await reader.next()).value!);
  }
  for (const numbers of seen) assertEquals(new Set(numbers).size, 200, "a split is one worker's");
  const both = seen[1].filter((x) => seen[0].includes(x)).length;
  assert(both > 100, `${both} of 200 elements were seen by both`);
});

testInline("/state describes what a window did", async (start) => {
  await using cluster = await start({ workers: 1, windowBytesMax: 20_000 });
  await using slow = trainer(cluster, "slow", { maxOutstandingRequests: 1 });
  await using fast = trainer(cluster, "fast");
  await take(slow, 1);
  await take(fast, 200);
  await take(slow, 2);
  const seen = async () => {
    const [window] = await windowsOf(cluster);
    const { readers } = (await cluster.describe()).jobs[0]!.iterations[0]!;
    return { window, missed: readers.map(({ figures }) => figures?.skipped) };
  };
  const window = await until(async () => {
    const { window, missed } = await seen();
    const { skipped = 0 } = slow.stats()[0]!;
    // What the fast one has requested ahead may still overtake the slow one, which is told so with
    // its next element.
    if (window !== undefined && window.skipped > skipped) await take(slow, 1);
    return window?.skipped === skipped && missed.includes(skipped) && window;
  });
  assertEquals([window.trainers, window.windowBytesMax], [2, 20_000]);
  assertEquals(window.hits + window.misses, window.served);
  assertEquals(window.hitRate, window.hits / window.served);
});
