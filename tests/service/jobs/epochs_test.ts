/** Epochs, repetitions, names and clients that come and go. */
import { Dataset, type DistributeOptions, LeatError, type LocalCluster } from "../../../mod.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { outcomesOf, readOutcomes } from "../../data/lib/outcomes.ts";
import { sorted, testInline, testOnEach, untilForgotten, upTo } from "../lib/carriers.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

const MODES = ["OFF", "DYNAMIC", "DATA", "DETERMINISTIC"] as const;

type Options = Omit<DistributeOptions, "service">;

/** Numbers from 0, distributed. */
function numbers(service: LocalCluster, count: number, options: Options = {}): Dataset<number> {
  return Dataset.range(count).distribute({ service, ...options });
}

/** How often each number comes in an epoch. */
const timesOf = (mode: string, workers: number) => mode === "OFF" ? workers : 1;

testInline("a dataset is read epoch by epoch, by loops or by repeat()", async (start) => {
  await using cluster = await start({ workers: 2 });
  for (const processingMode of MODES) {
    for (const jobName of [undefined, `epochs ${processingMode}`]) {
      const options = { processingMode, ...(jobName === undefined ? {} : { jobName }) };
      const dataset = numbers(cluster, 12, options);
      const times = timesOf(processingMode, 2);
      for (let epoch = 0; epoch < 3; epoch++) {
        assertEquals(sorted(await Array.fromAsync(dataset)), upTo(12, times), processingMode);
      }
      if (jobName !== undefined) continue;
      const repeated = await Array.fromAsync(dataset.repeat(3));
      assertEquals(sorted(repeated), upTo(12, 3 * times), processingMode);
      for (let epoch = 0; epoch < 3; epoch++) {
        const one = repeated.slice(12 * times * epoch, 12 * times * (epoch + 1));
        assertEquals(sorted(one), upTo(12, times), `${processingMode}, epoch ${epoch}`);
      }
    }
  }
});

testInline(
  "epochs differ in their random numbers, and a seed makes those of two programs equal",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const shuffled = Dataset.range(50).shuffle(50);
    for (const processingMode of ["OFF", "DATA", "DETERMINISTIC"] as const) {
      const options = { service: cluster, processingMode };
      const dataset = shuffled.distribute(options);
      const epochs = [await Array.fromAsync(dataset), await Array.fromAsync(dataset)].map(String);
      assert(epochs[0] !== epochs[1], processingMode);
      const seeded = () => shuffled.withOptions({ seed: 7 }).distribute(options);
      const [one, other] = [seeded(), seeded()];
      for (let epoch = 0; epoch < 2; epoch++) {
        assertEquals(await Array.fromAsync(one), await Array.fromAsync(other), processingMode);
      }
    }
  },
);

testInline(
  "iterators of one dataset that are read concurrently are separate epochs",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    for (const processingMode of MODES) {
      const dataset = numbers(cluster, 30, { processingMode });
      const iterators = [dataset.iterator(), dataset.iterator(), dataset.iterator()];
      const seen: number[][] = iterators.map(() => []);
      for (const open = new Set(iterators.keys()); open.size > 0;) {
        for (const i of open) {
          const { done, value } = await iterators[i]!.next();
          if (done) open.delete(i);
          else seen[i]!.push(value);
        }
      }
      const times = timesOf(processingMode, 2);
      for (const one of seen) {
        assertEquals(sorted(one), upTo(30, times), processingMode);
      }
    }
  },
);

testInline("an unread iterator is no client, but counts as an epoch", async (start) => {
  await using cluster = await start({ workers: 1 });
  const job = { jobName: "j", processingMode: "DYNAMIC" } as const;
  const dataset = numbers(cluster, 10, job);
  const unread = dataset.iterator();
  assertEquals((await cluster.describe()).jobs, []);
  assertEquals(sorted(await Array.fromAsync(dataset)), upTo(10));
  assertEquals((await cluster.describe()).jobs[0]!.iterations.length, 1);
  // It is the first repetition, whenever it is read.
  assertEquals(sorted(await Array.fromAsync(unread)), upTo(10));
});

testInline(
  "an iterator that is abandoned halfway delays no other, and the next starts from the beginning",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    for (const processingMode of MODES) {
      const dataset = numbers(cluster, 200, { processingMode, maxOutstandingRequests: 2 });
      for (let times = 0; times < 3; times++) {
        const iterator = dataset.iterator();
        for (let i = 0; i <= times; i++) await iterator.next();
        await iterator.return();
        assertEquals((await iterator.next()).done, true);
      }
      for await (const _ of dataset) break;
      const wanted = upTo(200, timesOf(processingMode, 2));
      assertEquals(sorted(await Array.fromAsync(dataset)), wanted, processingMode);
    }
    await untilForgotten(cluster);
  },
);

testOnEach("concurrent calls are answered in order, also after the end", async (start) => {
  await using cluster = await start({ workers: 2 });
  for (const processingMode of MODES) {
    await using iterator = numbers(cluster, 20, { processingMode }).iterator();
    const calls = Array.from({ length: 50 }, () => iterator.next());
    const answers = await Promise.all(calls);
    const given = answers.flatMap(({ done, value }) => done ? [] : [value!]);
    const wanted = upTo(20, timesOf(processingMode, 2));
    assertEquals(sorted(given), wanted, processingMode);
    assert(answers.slice(wanted.length).every(({ done }) => done), processingMode);
  }
});

testInline("two clients of one job leave, and a third reads what they left", async (start) => {
  await using cluster = await start({ workers: 2 });
  const job = { jobName: "j", processingMode: "DYNAMIC", maxOutstandingRequests: 1 } as const;
  const seen: number[] = [];
  for (let client = 0; client < 2; client++) {
    const iterator = numbers(cluster, 100, job).iterator();
    for (let i = 0; i < 5; i++) seen.push((await iterator.next()).value!);
    await iterator.return();
  }
  seen.push(...await Array.fromAsync(numbers(cluster, 100, job)));
  assertEquals(new Set(seen).size, seen.length, "no element twice");
  // Elements in transit to clients that left are lost with them.
  assert(seen.length >= 100 - 2 * 2, `${seen.length} of 100`);
});

testOnEach("many clients of one job divide what each worker gives", async (start) => {
  await using cluster = await start({ workers: 3 });
  for (const processingMode of ["OFF", "DYNAMIC", "DATA"] as const) {
    const job = { jobName: processingMode, processingMode, maxOutstandingRequests: 1 };
    const clients = Array.from({ length: 5 }, () => Array.fromAsync(numbers(cluster, 60, job)));
    const wanted = upTo(60, timesOf(processingMode, 3));
    assertEquals(sorted((await Promise.all(clients)).flat()), wanted, processingMode);
  }
});

/** Parameters of a job by name, and conflicting ones of the same name. */
const OTHERS: Record<string, [Options & { readonly count?: number }, ...string[]]> = {
  "another mode": [{ processingMode: "OFF" }, "OFF"],
  "a static mode": [{ processingMode: "DATA" }, "DATA"],
  "DETERMINISTIC": [{ processingMode: "DETERMINISTIC" }, "DETERMINISTIC"],
  "another dataset": [{ count: 7 }, "datasetId"],
  "consumers": [{ numConsumers: 2, consumerIndex: 0 }, "numConsumers: 2"],
  "other targets": [{ targetWorkers: "any" }, 'targetWorkers: "any"'],
  "tags": [{ targetTags: ["big"] }, '["big"]'],
};

testInline("a job's name with other parameters is refused once, showing both", async (start) => {
  await using cluster = await start({ workers: 1 });
  const job = { jobName: "j", processingMode: "DYNAMIC" } as const;
  await using reader = numbers(cluster, 20, job).repeat().iterator();
  await reader.next();
  for (const [name, [{ count = 20, ...other }, ...parts]] of Object.entries(OTHERS)) {
    const refused = numbers(cluster, count, { ...job, ...other }).iterator();
    const error = await assertRejects(() => refused.next(), LeatError);
    assertEquals(error.code, "invalid_argument", `${name}: ${error.message}`);
    if (name === "consumers") continue; // they need a dataset without end, which is said first
    for (const part of ['"j"', "DYNAMIC", ...parts]) {
      assert(error.message.includes(part), `${name}: ${error.message}`);
    }
    assertEquals((await refused.next()).done, true, name);
  }
  // The limit of open requests may differ between clients.
  const agreeing = numbers(cluster, 20, { ...job, maxOutstandingRequests: 3 });
  assertEquals((await readOutcomes(agreeing.iterator(), 1)).length, 1);
});

testInline(
  "a job that is read for longer than jobGcTimeoutMs is kept, and one without readers is forgotten",
  async (start) => {
    await using cluster = await start({ workers: 1, jobGcTimeoutMs: 0 });
    const job = { jobName: "j", processingMode: "DYNAMIC", maxOutstandingRequests: 1 } as const;
    await using reader = numbers(cluster, 40, job).iterator();
    const seen = [(await reader.next()).value!];
    const visitor = numbers(cluster, 40, job).iterator();
    seen.push((await visitor.next()).value!);
    await visitor.return();
    for await (const x of reader) seen.push(x);
    assertEquals(new Set(seen).size, seen.length);
    await reader.return();
    await untilForgotten(cluster);
    assertEquals(sorted(await Array.fromAsync(numbers(cluster, 40, job))), upTo(40));
  },
);

testInline("jobs are kept forever with jobGcTimeoutMs -1", async (start) => {
  await using cluster = await start({ workers: 1, jobGcTimeoutMs: -1 });
  const job = { jobName: "j", processingMode: "DYNAMIC" } as const;
  assertEquals(sorted(await Array.fromAsync(numbers(cluster, 10, job))), upTo(10));
  assertEquals(await Array.fromAsync(numbers(cluster, 10, job)), []);
});

testOnEach(
  "a worker between epochs takes part in the next, one that goes does not",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const dataset = numbers(cluster, 16);
    assertEquals(sorted(await Array.fromAsync(dataset)), upTo(16));
    await cluster.addWorker();
    assertEquals(sorted(await Array.fromAsync(dataset)), upTo(16, 2));
    await cluster.addWorker();
    assertEquals(sorted(await Array.fromAsync(dataset)), upTo(16, 3));
    await cluster.stopWorker(0, { graceful: true });
    await cluster.stopWorker(1, { graceful: true });
    assertEquals(sorted(await Array.fromAsync(dataset)), upTo(16));
  },
);

testInline(
  "epochs of a named job continue after the dispatcher restarts between them",
  async (start) => {
    await using temporary = await TempFolder.make();
    const journal = temporary.path;
    await using cluster = await start({ workers: 2, journal });
    const modes = MODES.filter((mode) => mode !== "OFF");
    const datasets = modes.map((processingMode) =>
      numbers(cluster, 20, { processingMode, jobName: processingMode })
    );
    for (let epoch = 0; epoch < 3; epoch++) {
      for (const dataset of datasets) {
        assertEquals(sorted(await Array.fromAsync(dataset)), upTo(20), `epoch ${epoch}`);
      }
      await cluster.stopDispatcher();
      await cluster.restartDispatcher();
    }
  },
);

testInline("epochs of unnamed jobs need no journal between them", async (start) => {
  await using cluster = await start({ workers: 1 });
  const dataset = numbers(cluster, 20, { processingMode: "DYNAMIC" });
  for (let epoch = 0; epoch < 3; epoch++) {
    assertEquals(sorted(await Array.fromAsync(dataset)), upTo(20), `epoch ${epoch}`);
    await cluster.stopDispatcher();
    await cluster.restartDispatcher();
  }
});

testInline("a distributed dataset is a dataset like others", async (start) => {
  await using cluster = await start({ workers: 2 });
  const options = { service: cluster, processingMode: "DYNAMIC" } as const;
  const squares = Dataset.range(20).map((x) => x * x).distribute(options);
  assertEquals(await squares.reduce(0, (sum, x) => sum + x), 2470);
  assertEquals((await Array.fromAsync(squares.batch(6))).map(({ shape }) => shape[0]), [
    6,
    6,
    6,
    2,
  ]);
  assertEquals((await Array.fromAsync(squares.filter((x) => x % 2 === 0))).length, 10);
  assertEquals((await Array.fromAsync(squares.enumerate())).map(([i]) => i), upTo(20));
  assertEquals(
    sorted(await Array.fromAsync(squares.shuffle(5).skip(0).prefetch(2).cache())).length,
    20,
  );
  const both = Dataset.zip([Dataset.range(20).distribute(options), squares]);
  assertEquals((await Array.fromAsync(both)).length, 20);
  const joined = squares.concatenate(Dataset.from([-1]).distribute({ service: cluster }));
  assertEquals((await Array.fromAsync(joined)).slice(20), [-1, -1]);
  const nested = Dataset.range(3).interleave((x) => numbers(cluster, x + 1, options));
  assertEquals(sorted(await Array.fromAsync(nested)), [0, 0, 0, 1, 1, 2]);
  const flat = Dataset.range(3).flatMap((x) => numbers(cluster, x + 1, options));
  assertEquals(sorted(await Array.fromAsync(flat)), [0, 0, 0, 1, 1, 2]);
  assertEquals(await Dataset.range(1).distribute(options).getSingleElement(), 0);
  const sampled = Dataset.sampleFromDatasets([squares, numbers(cluster, 10)], { seed: 1 });
  assertEquals((await Array.fromAsync(sampled)).length, 40);
});

testInline("datasets of two modes or two services are read concurrently", async (start) => {
  await using one = await start({ workers: 2 });
  await using other = await start({ workers: 1 });
  const pairs = numbers(one, 10, { processingMode: "DYNAMIC" }).zip(numbers(other, 30));
  const found = await Array.fromAsync(pairs);
  assertEquals(sorted(found.map(([x]) => x)), upTo(10));
  assertEquals(found.map(([, x]) => x), upTo(10));
});

testOnEach(
  "a reader goes on while another of its job fails, leaves or never reads",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const failing = () =>
      Dataset.range(60).map((x) => {
        if (x === 30) throw new Error("thirty");
        return x;
      }).distribute({
        service: cluster,
        jobName: "j",
        processingMode: "DYNAMIC",
        maxOutstandingRequests: 1,
      });
    const idle = failing().iterator();
    const leaving = failing().iterator();
    const seen = (await readOutcomes(leaving, 3)).length;
    await leaving.return();
    const rest = await outcomesOf(failing().iterator());
    await idle.return();
    assert(rest.length + seen >= 60 - 2, `${rest.length} and ${seen}`);
  },
);
