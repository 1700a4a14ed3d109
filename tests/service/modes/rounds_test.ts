/**
 * Coordinated reads (paper section 3.6), inline: consumers and workers in different numbers,
 * coming, going, slow, and with invalid requests. `coordinated_test.ts` has the tests that depend
 * on carriers.
 */
import { Dataset, LeatError, type LocalCluster } from "../../../mod.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { testInline } from "../lib/carriers.ts";
import { returned, slower } from "../lib/fixture_slow.ts";
import { slowly } from "../lib/slowly.ts";
import { until } from "../../lib/until.ts";

/** Longer than any test: no round is skipped unless a test is about that. */
const PATIENT = { skipAfterMs: 60_000, workerTimeoutMs: 400 } as const;

interface Consuming {
  readonly numConsumers: number;
  readonly consumerIndex: number;
  readonly jobName?: string;
  readonly maxOutstandingRequests?: number;
}

/** Numbers in pairs with the id of their task. */
function numbered(): Dataset<[number, number]> {
  return Dataset.zip([
    Dataset.range(1_000_000).repeat(),
    Dataset.random({ rerandomizeEachIteration: true }).take(1).cache().repeat(),
  ]);
}

function consumer(
  service: LocalCluster,
  options: Consuming,
  dataset: Dataset<unknown> = numbered(),
) {
  return dataset.distribute({ service, jobName: "rounds", ...options }).iterator();
}

function consumers(service: LocalCluster, numConsumers: number, dataset?: Dataset<unknown>) {
  return Array.from(
    { length: numConsumers },
    (_, consumerIndex) => consumer(service, { numConsumers, consumerIndex }, dataset),
  );
}

type Reader = ReturnType<typeof consumer>;

/** One step of all: each takes its own part of one round of one task, whose id is returned. */
async function step(readers: readonly Reader[]): Promise<number> {
  const parts = await Promise.all(readers.map((reader) => reader.next()));
  const elements = parts.map(({ done, value }) => {
    assertEquals(done, false);
    return value as [number, number];
  });
  const [[first, task]] = elements as [[number, number]];
  assertEquals(elements, elements.map((_, index) => [first + index, task]));
  assertEquals(first % readers.length, 0);
  return task;
}

async function leave(readers: readonly Reader[]): Promise<void> {
  for (const reader of readers) await reader.return();
}

for (const [workers, numConsumers] of [[1, 1], [1, 3], [3, 1], [3, 2], [2, 5]] as const) {
  testInline(
    `${numConsumers} consumers take every round of ${workers} workers together`,
    async (start) => {
      await using cluster = await start({ workers, ...PATIENT });
      const readers = consumers(cluster, numConsumers);
      const tasks = new Set<number>();
      for (let round = 0; round < 30 || tasks.size < workers; round++) {
        tasks.add(await step(readers));
      }
      assertEquals(tasks.size, workers);
      await leave(readers);
    },
  );
}

testInline(
  "rounds go on through a worker that is lost, one that is restarted and one that leaves",
  async (start) => {
    await using cluster = await start({ workers: 2, ...PATIENT });
    const readers = consumers(cluster, 2);
    const two = new Set<number>();
    while (two.size < 2) two.add(await step(readers));
    const readUntil = async (count: number, isOver: (tasks: Set<number>) => boolean) => {
      for (;;) {
        const tasks = new Set<number>();
        for (let i = 0; i < count; i++) tasks.add(await step(readers));
        if (isOver(tasks)) return tasks;
      }
    };
    await cluster.stopWorker(0);
    const [left] = await readUntil(6, ({ size }) => size === 1);
    assert(two.has(left!));
    await cluster.restartWorker(0);
    const again = await readUntil(6, ({ size }) => size === 2);
    assertEquals(again.intersection(two), new Set([left]), "its place in the data was lost");
    await cluster.stopWorker(1, { graceful: true });
    const [last] = await readUntil(6, ({ size }) => size === 1);
    assert(last !== left);
    await leave(readers);
  },
);

testInline(
  "consumers wait when the last worker is lost, and go on together with the next",
  async (start) => {
    await using cluster = await start({ workers: 1, ...PATIENT });
    const readers = consumers(cluster, 2);
    const first = await step(readers);
    await cluster.stopWorker(0);
    const next = (async () => {
      for (;;) {
        const task = await step(readers);
        if (task !== first) return task;
      }
    })();
    await cluster.addWorker();
    assert(await next !== first);
    await leave(readers);
  },
);

testInline("a consumer that is ahead waits for the others after a few rounds", async (start) => {
  await using cluster = await start({ workers: 2, ...PATIENT });
  const [fast, slow] = consumers(cluster, 2) as [Reader, Reader];
  const taken: [number, number][] = [];
  let isSlowOver = false;
  const reading = (async () => {
    for (let i = 0; i < 40; i++) taken.push((await fast.next()).value as [number, number]);
    assert(isSlowOver, "the fast one was 40 rounds ahead");
  })();
  for (let round = 0; round < 40; round++) {
    const [number, task] = (await slow.next()).value as [number, number];
    // Runs everything that does not need it.
    for (let turns = 0; turns < 10; turns++) await new Promise((resolve) => setTimeout(resolve, 0));
    await until(() => taken.length > round);
    assert(taken.length <= round + 10, `${taken.length} rounds taken in round ${round}`);
    assertEquals(taken[round], [number - 1, task]);
    isSlowOver = round >= 30;
  }
  await reading;
  await leave([fast, slow]);
});

testInline(
  "a consumer that leaves holds up no other, nor does one whose next is cancelled",
  async (start) => {
    await using cluster = await start({ workers: 2, ...PATIENT });
    const [a, b, c] = consumers(cluster, 3) as [Reader, Reader, Reader];
    for (let round = 0; round < 6; round++) await step([a, b, c]);
    await b.return();
    for (let round = 0; round < 20; round++) {
      const [one, three] = await Promise.all([a.next(), c.next()]);
      const [number, task] = one.value as [number, number];
      assertEquals(three.value, [number + 2, task]);
    }
    // The last of two requests more than there is as long as the other requests nothing, and gives
    // up.
    const asked: Promise<unknown>[] = [];
    for (let i = 0; i < 12; i++) asked.push(c.next().catch((error) => error));
    await c.return();
    await Promise.all(asked);
    for (let round = 0; round < 20; round++) assertEquals((await a.next()).done, false);
    await a.return();
  },
);

testInline(
  "a consumer that is restarted goes on with the others, where they are",
  async (start) => {
    await using cluster = await start({ workers: 2, ...PATIENT });
    const [a, b] = consumers(cluster, 2) as [Reader, Reader];
    for (let round = 0; round < 6; round++) await step([a, b]);
    await b.return();
    const again = consumer(cluster, { numConsumers: 2, consumerIndex: 1 });
    let met: [number, number] | undefined;
    again.next().then(({ value }) => met = value as [number, number]);
    const alone: [number, number][] = [];
    while (met === undefined) alone.push((await a.next()).value as [number, number]);
    // The other has taken the round in which they meet, or reaches it now.
    const [first, task] = met as [number, number];
    const together = () => alone.findIndex(([n, its]) => n === first - 1 && its === task);
    while (together() < 0) alone.push((await a.next()).value as [number, number]);
    for (const [number, its] of alone.slice(together() + 1)) {
      assertEquals((await again.next()).value, [number + 1, its]);
    }
    for (let round = 0; round < 20; round++) await step([a, again]);
    await leave([a, again]);
  },
);

testInline(
  "a second consumer of an index is refused, with the round that the first is at",
  async (start) => {
    await using cluster = await start({ workers: 1, ...PATIENT });
    const readers = consumers(cluster, 2);
    for (let round = 0; round < 6; round++) await step(readers);
    const described = async () =>
      (await cluster.describe()).jobs[0]!.iterations[0]!.readers[1]!.position;
    while (((await described())?.round ?? 0) < 4) await step(readers);
    const second = consumer(cluster, { numConsumers: 2, consumerIndex: 1 });
    const error = await assertRejects(() => second.next(), LeatError);
    assertEquals(error.code, "failed_precondition");
    const [, round] = /is at round (\d+)/.exec(error.message) ?? [error.message];
    assert(Number(round) >= 4, error.message);
    await step(readers);
    await leave(readers);
  },
);

testInline("all consumers may be restarted together, and begin a round together", async (start) => {
  await using cluster = await start({ workers: 2, ...PATIENT });
  for (let life = 0; life < 3; life++) {
    const readers = consumers(cluster, 2);
    for (let round = 0; round < 8; round++) await step(readers);
    await leave(readers);
  }
});

testInline("a round that is late is skipped by all consumers", async (start) => {
  await using cluster = await start({ workers: 2, skipAfterMs: 2 });
  const readers = consumers(cluster, 2, numbered().map(slowly, { spec: undefined }));
  const skipped = async () => (await cluster.sources()).map(({ skipped }) => skipped);
  using slowness = new DisposableStack();
  await until(async () => {
    for (let round = 0; round < 10; round++) await step(readers);
    if ((await skipped()).filter((count) => count > 0).length === 2) return true;
    // On a slow machine, whose steps take longer than the rounds, none of these is skipped.
    slowness.use(slower());
    return false;
  }, 0);
  await leave(readers);
  await cluster.close();
  await returned();
});

testInline(
  "an element that fails costs its consumer that element, and all stay in step",
  async (start) => {
    await using cluster = await start({ workers: 1, ...PATIENT });
    const dataset = numbered().map(([number, task]) => {
      if (number === 5) throw new TypeError("five");
      return [number, task];
    }, { spec: undefined });
    const [a, b] = consumers(cluster, 2, dataset) as [Reader, Reader];
    for (let round = 0; round < 2; round++) await step([a, b]);
    const [four, five] = await Promise.allSettled([a.next(), b.next()]);
    assertEquals([four.status, five.status], ["fulfilled", "rejected"]);
    for (let round = 0; round < 5; round++) await step([a, b]);
    await leave([a, b]);
  },
);

testInline(
  "all consumers end with the same round when their dataset ends",
  async (start) => {
    await using cluster = await start({ workers: 2, ...PATIENT });
    // The size of a filtered dataset is unknown.
    const dataset = Dataset.range(101).filter((x) => x >= 0);
    const readers = consumers(cluster, 3, dataset);
    const counts = await Promise.all(readers.map(async (reader, index) => {
      let count = 0;
      for (let part = await reader.next(); !part.done; part = await reader.next()) {
        assertEquals((part.value as number) % 3, index);
        count++;
        // One is slower than the others.
        if (index === 1) await new Promise((resolve) => setTimeout(resolve, 1));
      }
      return count;
    }));
    assertEquals(new Set(counts).size, 1, `${counts}`);
    assert(counts[0]! >= 33, `the rounds of one task at least, ${counts}`);
    await leave(readers);
  },
);

testInline(
  "a consumer that joins again after all have ended gets the end at once",
  async (start) => {
    await using cluster = await start({ workers: 2, ...PATIENT });
    const dataset = Dataset.range(30).filter((x) => x >= 0);
    const readers = consumers(cluster, 3, dataset);
    await Promise.all(readers.map(async (reader) => {
      while (!(await reader.next()).done);
    }));
    await leave(readers);
    const [, again] = consumers(cluster, 3, dataset);
    assertEquals(await again!.next(), { done: true, value: undefined });
    await leave([again!]);
  },
);

testInline(
  "all consumers end when the workers that had produced everything are gone",
  async (start) => {
    await using cluster = await start({ workers: 1, ...PATIENT });
    const readers = consumers(cluster, 2, Dataset.range(12).filter((x) => x >= 0));
    const [first] = await Promise.all(readers.map((reader) => reader.next()));
    assertEquals(first!.value, 0);
    const isFinished = async () => (await cluster.describe()).jobs[0]!.iterations[0]!.finished;
    await until(() => isFinished(), 5);
    await cluster.stopWorker(0);
    const counts = await Promise.all(readers.map(async (reader) => {
      let count = 1;
      while (!(await reader.next()).done) count++;
      return count;
    }));
    assertEquals(counts[0], counts[1]);
    await leave(readers);
  },
);

testInline(
  "conflicting or invalid options of consumers are refused with the reason",
  async (start) => {
    await using cluster = await start({ workers: 1, ...PATIENT });
    const readers = consumers(cluster, 2);
    await step(readers);
    const refused = async (
      options: Partial<Consuming>,
      dataset: Dataset<unknown> = numbered(),
    ): Promise<string> => {
      const open = () =>
        consumer(cluster, { numConsumers: 2, consumerIndex: 0, ...options }, dataset).next();
      const { code, message } = await assertRejects(async () => await open(), LeatError);
      assertEquals(code, "invalid_argument");
      return message;
    };
    // The dataset was built again, so only its constants make it a different one.
    assert((await refused({ numConsumers: 3, consumerIndex: 2 })).includes("numConsumers: 2"));
    assert((await refused({ consumerIndex: 2 })).includes("consumerIndex"));
    assert((await refused({ consumerIndex: -1 })).includes("consumerIndex"));
    assert((await refused({ jobName: "finite" }, Dataset.range(10))).includes(".repeat()"));
    assert((await refused({ jobName: "empty" }, Dataset.range(0).repeat())).includes(".repeat()"));
    await step(readers);
    await leave(readers);
  },
);
