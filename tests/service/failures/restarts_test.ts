/** Dispatchers and workers that stop, come late and come back, in every relevant order. */
import {
  Dataset,
  distributedSave,
  type DistributeOptions,
  LeatError,
  type LocalCluster,
  type LocalClusterOptions,
  registerDataset,
  udf,
} from "../../../mod.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { sorted, testInline, testOnEach, upTo } from "../lib/carriers.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { until } from "../../lib/until.ts";

const held = udf<typeof import("../lib/fixture_gate.ts").held>(
  import.meta.resolve("../lib/fixture_gate.ts"),
  "held",
);

type Start = (options?: LocalClusterOptions) => Promise<LocalCluster>;

/** A cluster with a temporary journal. */
async function withJournal(
  start: Start,
  options: LocalClusterOptions,
  use: (cluster: LocalCluster) => Promise<void>,
): Promise<void> {
  await using temporary = await TempFolder.make();
  const journal = temporary.path;
  await using cluster = await start({ ...options, journal });
  await use(cluster);
}

function numbers(
  service: LocalCluster,
  count: number,
  options: Omit<DistributeOptions, "service"> = {},
): Dataset<number> {
  return Dataset.range(count).distribute({ service, maxOutstandingRequests: 2, ...options });
}

async function restartDispatcher(cluster: LocalCluster): Promise<void> {
  await cluster.stopDispatcher();
  await cluster.restartDispatcher();
}

/** Modes in which each number comes once whatever happens to the dispatcher. */
const ONCE = ["DYNAMIC", "DATA", "DETERMINISTIC"] as const;

testInline(
  "the dispatcher restarts before, during and after an epoch, and nothing is lost",
  (start) =>
    withJournal(start, { workers: 2 }, async (cluster) => {
      for (const processingMode of ONCE) {
        const dataset = numbers(cluster, 60, { processingMode });
        await using iterator = dataset.iterator();
        await restartDispatcher(cluster);
        const seen: number[] = [];
        for (let i = 0; i < 60; i++) {
          if (i === 1 || i === 30) await restartDispatcher(cluster);
          seen.push((await iterator.next()).value!);
        }
        await restartDispatcher(cluster);
        assertEquals((await iterator.next()).done, true, processingMode);
        assertEquals(sorted(seen), upTo(60), processingMode);
      }
    }),
);

testInline(
  "the dispatcher restarts after every element, many times",
  (start) =>
    withJournal(start, { workers: 1 }, async (cluster) => {
      const seen: number[] = [];
      for await (const x of numbers(cluster, 12, { processingMode: "DYNAMIC" })) {
        seen.push(x);
        await restartDispatcher(cluster);
      }
      assertEquals(sorted(seen), upTo(12));
    }),
);

testInline(
  "the dispatcher restarts during each epoch of a repeated dataset",
  (start) =>
    withJournal(start, { workers: 2 }, async (cluster) => {
      for (const processingMode of ONCE) {
        const seen: number[] = [];
        const repeated = numbers(cluster, 20, { processingMode, jobName: processingMode }).repeat(
          3,
        );
        for await (const x of repeated) {
          if (seen.push(x) % 20 === 7) await restartDispatcher(cluster);
        }
        assertEquals(sorted(seen), upTo(20, 3), processingMode);
      }
    }),
);

/** More than two workers hold of them at a time. */
const COUNT = 400;

testInline(
  "dispatcher and workers restart together, and every job continues",
  (start) =>
    withJournal(start, { workers: 2, workerTimeoutMs: 500 }, async (cluster) => {
      const restartAll = async () => {
        await cluster.stopDispatcher();
        for (const worker of [0, 1]) await cluster.stopWorker(worker);
        await cluster.restartDispatcher();
        for (const worker of [0, 1]) await cluster.restartWorker(worker);
      };
      for (const processingMode of ONCE) {
        const seen: number[] = [];
        for await (const x of numbers(cluster, COUNT, { processingMode })) {
          if (seen.push(x) === 9) await restartAll();
        }
        if (processingMode === "DETERMINISTIC") assertEquals(seen, upTo(COUNT));
        // Lost splits stay lost; shares start again.
        else if (processingMode === "DATA") assertEquals(new Set(seen).size, COUNT);
        else assert(new Set(seen).size === seen.length && seen.length > 9, `${seen.length}`);
      }
    }),
);

testOnEach("servers may be started in any order, however late", async (start) => {
  await using cluster = await start({ workers: 0 });
  await cluster.stopDispatcher();
  const readings = ONCE.filter((mode) => mode !== "DATA").map((processingMode) =>
    Array.fromAsync(numbers(cluster, 20, { processingMode }))
  );
  const registering = registerDataset(cluster, Dataset.range(5));
  await cluster.restartDispatcher();
  await cluster.addWorker();
  for (const reading of readings) assertEquals(sorted(await reading), upTo(20));
  const byId = Dataset.fromId<number>(cluster, await registering);
  assertEquals(sorted(await Array.fromAsync(byId)), upTo(5));
});

testInline("a worker that is added mid-epoch takes part in it, in every mode", async (start) => {
  for (const processingMode of ["OFF", ...ONCE] as const) {
    await using cluster = await start({ workers: 1 });
    const seen: number[] = [];
    for await (const x of numbers(cluster, 100, { processingMode })) {
      if (seen.push(x) === 5) await cluster.addWorker();
    }
    assertEquals(sorted(seen), upTo(100, processingMode === "OFF" ? 2 : 1), processingMode);
  }
});

testInline(
  "the last worker stops mid-epoch; another one, or the same, finishes it",
  async (start) => {
    for (const processingMode of ["OFF", ...ONCE] as const) {
      for (const next of ["addWorker", "restartWorker"] as const) {
        // Static shares belong to listed workers.
        if (processingMode === "DATA" && next === "addWorker") continue;
        await using cluster = await start({ workers: 1, workerTimeoutMs: 300 });
        const seen: number[] = [];
        for await (const x of numbers(cluster, 100, { processingMode })) {
          if (seen.push(x) !== 5) continue;
          await cluster.stopWorker(0);
          await (next === "addWorker" ? cluster.addWorker() : cluster.restartWorker(0));
        }
        const what = `${processingMode}, ${next}`;
        if (processingMode === "DETERMINISTIC") assertEquals(seen, upTo(100), what);
        else if (processingMode === "DYNAMIC") {
          assertEquals(new Set(seen).size, seen.length, what);
        } else assertEquals(new Set(seen).size, 100, what);
      }
    }
  },
);

testInline(
  "a worker that restarts between epochs, and one that had done its part, do no harm",
  async (start) => {
    await using cluster = await start({ workers: 2, workerTimeoutMs: 300 });
    for (const processingMode of ["OFF", ...ONCE] as const) {
      const dataset = numbers(cluster, 20, { processingMode, jobName: processingMode });
      for (let epoch = 0; epoch < 2; epoch++) {
        const times = processingMode === "OFF" ? 2 : 1;
        assertEquals(sorted(await Array.fromAsync(dataset)), upTo(20, times), processingMode);
        await cluster.stopWorker(epoch);
        await cluster.restartWorker(epoch);
      }
    }
  },
);

testInline("a stuck worker does not delay the elements of others", async (start) => {
  await using cluster = await start({ workers: 3 });
  // The worker that gets the number 29 hangs on it.
  await using temporary = await TempFolder.make();
  const gate = `${temporary.path}/gate`;
  const stuck = Dataset.range(30).map(held, { captures: { from: 29, gate } }).distribute({
    service: cluster,
    processingMode: "DYNAMIC",
    maxOutstandingRequests: 1,
  });
  await using iterator = stuck.iterator();
  const seen: number[] = [];
  for (let i = 0; i < 29; i++) seen.push((await iterator.next()).value!);
  assertEquals(sorted(seen), upTo(29));
  await Deno.writeTextFile(gate, "open");
  assertEquals(await iterator.next(), { done: false, value: 29 });
  assertEquals((await iterator.next()).done, true);
});

testInline(
  "a job's name, mode and position survive its dispatcher in the journal",
  (start) =>
    withJournal(start, { workers: 1 }, async (cluster) => {
      const job = { jobName: "j", processingMode: "DYNAMIC" } as const;
      await using reader = numbers(cluster, 40, job).iterator();
      const seen = [(await reader.next()).value!];
      await restartDispatcher(cluster);
      const other = numbers(cluster, 40, { ...job, processingMode: "OFF" }).iterator();
      const error = await assertRejects(() => other.next(), LeatError, "other parameters");
      assertEquals(error.code, "invalid_argument");
      await using agreeing = numbers(cluster, 40, job).iterator();
      const rest = await Promise.all([reader, agreeing].map((one) => Array.fromAsync(one)));
      assertEquals(sorted([...seen, ...rest.flat()]), upTo(40));
    }),
);

testInline(
  "a registered dataset survives its dispatcher in the journal, and only there",
  async (start) => {
    await withJournal(start, { workers: 1 }, async (cluster) => {
      const id = await registerDataset(cluster, Dataset.range(5).batch(5));
      await registerDataset(cluster, Dataset.range(6), { datasetId: "six" });
      await restartDispatcher(cluster);
      assertEquals((await Array.fromAsync(Dataset.fromId(cluster, id))).length, 1);
      assertEquals((await Array.fromAsync(Dataset.fromId(cluster, "six"))).length, 6);
      assertEquals(await registerDataset(cluster, Dataset.range(5).batch(5)), id);
      await assertRejects(
        () => registerDataset(cluster, Dataset.range(7), { datasetId: "six" }),
        LeatError,
        "taken",
      );
    });
    await using cluster = await start({ workers: 1 });
    await registerDataset(cluster, Dataset.range(6), { datasetId: "six" });
    await restartDispatcher(cluster);
    const lost = Dataset.fromId(cluster, "six").iterator();
    assertEquals((await assertRejects(() => lost.next(), LeatError)).code, "not_found");
  },
);

testInline(
  "a large pipeline is read by workers that come after it was registered",
  (start) =>
    withJournal(start, { workers: 0 }, async (cluster) => {
      const table = Array.from({ length: 40_000 }, (_, i) => `entry ${i} of a table of texts`);
      const texts = Dataset.range(3).map((x, { table }) => table[x * 10_000]!, {
        captures: { table },
      });
      const reading = Array.fromAsync(texts.distribute({ service: cluster }));
      await until(async () => (await cluster.describe()).jobs.length > 0);
      await restartDispatcher(cluster);
      await cluster.addWorker();
      assertEquals(await reading, [0, 1, 2].map((x) => table[x * 10_000]!));
    }),
);

testInline(
  "a save and a named job continue after their dispatcher restarts",
  (start) =>
    withJournal(start, { workers: 2 }, async (cluster) => {
      await using temporary = await TempFolder.make();
      const folder = temporary.path;
      const saving = distributedSave(Dataset.range(400).batch(4), `${folder}/saved`, cluster);
      const seen: number[] = [];
      for await (const x of numbers(cluster, 100, { processingMode: "DETERMINISTIC" })) {
        if (seen.push(x) % 40 === 0) await restartDispatcher(cluster);
      }
      await saving;
      assertEquals(seen, upTo(100));
      const saved = await Dataset.load<number[]>(`${folder}/saved`);
      assertEquals(saved.cardinality(), 100);
    }),
);

testOnEach(
  "iterators that wait are ended by return(), and by the end of their cluster",
  async (start) => {
    const cluster = await start({ workers: 0 });
    const modes = ["OFF", "DYNAMIC", "DETERMINISTIC"] as const;
    const iterators = modes.map((mode) =>
      numbers(cluster, 10, { processingMode: mode }).iterator()
    );
    const waiting = iterators.flatMap((iterator) => [iterator.next(), iterator.next()]);
    const answers = waiting.map((answer) =>
      answer.then(({ done }) => done, (error) => LeatError.from(error).code)
    );
    // A reader that starts after its cluster was closed gets an error.
    await until(async () => (await cluster.describe()).jobs.length >= iterators.length);
    await iterators[0]!.return();
    assertEquals(await Promise.all(answers.slice(0, 2)), [true, true]);
    await cluster.close();
    // The first call gets the error, and later ones the end.
    const told = await Promise.all(answers.slice(2));
    assertEquals([told[1], told[3]], [true, true]);
    for (const why of [told[0], told[2]]) {
      // Depends on which part of the cluster ended first.
      assert(why === "cancelled" || why === "unavailable", `${why}`);
    }
  },
);

testInline(
  "a closed cluster is distinguished from an invalid address",
  async (start) => {
    const cluster = await start({ workers: 0 });
    await cluster.close();
    await cluster.close();
    const late = numbers(cluster, 10).iterator();
    const error = await assertRejects(() => late.next(), LeatError, "an open LocalCluster");
    assertEquals(error.code, "invalid_argument");
    assertEquals((await late.next()).done, true);
  },
);
