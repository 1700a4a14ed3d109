/**
 * Pipelines on workers that cannot continue: trainers get the error, despite `ignoreErrors`, and
 * never the end of the data.
 */
import { Dataset, type DistributeOptions, type LocalCluster } from "../../../mod.ts";
import { assert, assertEquals } from "../../assert.ts";
import { type Outcome, outcomesOf } from "../../data/lib/outcomes.ts";
import { testInline } from "../lib/carriers.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { until } from "../../lib/until.ts";

type Mode = Omit<DistributeOptions, "service">;

const MODES: Record<string, Mode> = {
  OFF: {},
  "several requests": { maxOutstandingRequests: 8 },
  DATA: { processingMode: "DATA" },
  DYNAMIC: { processingMode: "DYNAMIC" },
  sharing: { jobName: "shared", sharing: { trainerId: "t" } },
  DETERMINISTIC: { processingMode: "DETERMINISTIC" },
};

/** A path that no program writes. */
const PATH = "/nowhere/at/all";

/** Four numbers of each, but the third waits for data that never comes. */
function neverComes(path = PATH): Dataset<number> {
  return Dataset.range(5).flatMap(async (x, { Dataset, path }) => {
    if (x !== 2) return Dataset.range(10 * x, 10 * x + 4);
    return await Dataset.load<number>(path, { wait: { pollMs: 1, timeoutMs: 20 } });
  }, { captures: { path } });
}

/** The elements for a trainer that ignores failed ones; the last one is the final error. */
async function elementsBeforeFailure(dataset: Dataset<unknown>, why: RegExp): Promise<unknown[]> {
  await using iterator = dataset.ignoreErrors().iterator();
  const outcomes: Outcome[] = await outcomesOf(iterator);
  const last = outcomes.pop();
  assert(last !== undefined && "error" in last, `it ended after ${JSON.stringify(last)}`);
  assert(why.test(last.error), last.error);
  return outcomes.map((outcome) => "element" in outcome ? outcome.element : outcome.error);
}

for (const [name, mode] of Object.entries(MODES)) {
  testInline(`a task that cannot continue has not ended: ${name}`, async (start) => {
    await using cluster = await start({ workers: 1 });
    const begins = mode.sharing === undefined ? neverComes() : neverComes().repeat();
    const dataset = begins.distribute({ service: cluster, ...mode });
    const given = await elementsBeforeFailure(dataset, /\/nowhere\/at\/all/);
    assertEquals(given, [0, 1, 2, 3, 10, 11, 12, 13]);
  });
}

/** The elements of each of two consumers. */
async function bothConsumers(cluster: LocalCluster, mode: Mode): Promise<unknown[][]> {
  return await Promise.all([0, 1].map((consumerIndex) =>
    elementsBeforeFailure(
      neverComes().distribute({
        service: cluster,
        jobName: "both",
        numConsumers: 2,
        consumerIndex,
        ...mode,
      }),
      /\/nowhere\/at\/all/,
    )
  ));
}

testInline("a task that cannot continue tells all consumers of its rounds", async (start) => {
  await using cluster = await start({ workers: 1 });
  const given = await bothConsumers(cluster, {});
  assertEquals(given, [[0, 2, 10, 12], [1, 3, 11, 13]]);
});

testInline(
  "a task that cannot continue tells all consumers of a DETERMINISTIC stream",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const given = await bothConsumers(cluster, { processingMode: "DETERMINISTIC" });
    assertEquals(given, [[0, 2, 10, 12], [1, 3, 11, 13]]);
  },
);

testInline(
  "a trainer that joins a task that cannot continue gets the error, too",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const dataset = neverComes().distribute({ service: cluster, jobName: "both" });
    await using first = dataset.iterator();
    await first.next();
    await elementsBeforeFailure(dataset, /\/nowhere\/at\/all/);
    assertEquals(await elementsBeforeFailure(dataset, /\/nowhere\/at\/all/), []);
    await untilFailed(cluster);
    const { workers, jobs } = await cluster.describe();
    assert(/^It cannot continue: .*\/nowhere/.test(workers[0]!.activity.reason!));
    assert(/that it cannot continue: .*\/nowhere/.test(jobs[0]!.iterations[0]!.bottleneck.text));
  },
);

testInline(
  "a client that joins after all clients of a failed task left reads everything",
  async (start) => {
    for (const processingMode of ["OFF", "DYNAMIC"] as const) {
      await using cluster = await start({ workers: 1 });
      await using temporary = await TempFolder.make();
      const folder = temporary.path;
      await failThenReadAll(cluster, `${folder}/late`, processingMode);
    }
  },
);

testInline("a DETERMINISTIC stream continues from before the failed read", async (start) => {
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  const path = `${folder}/late`;
  await using cluster = await start({ workers: 1 });
  const dataset = Dataset.range(5).flatMap(async (x, { Dataset, path }) => {
    if (x !== 2) return Dataset.range(10 * x, 10 * x + 2);
    return await Dataset.load<number>(path, { wait: { pollMs: 1, timeoutMs: 20 } });
  }, { captures: { path } }).batch(3)
    .distribute({ service: cluster, processingMode: "DETERMINISTIC" }).unbatch();
  await using iterator = dataset.iterator();
  const before = await outcomesOf(iterator);
  assert("error" in before.pop()!);
  const state = await iterator.save();
  await Dataset.range(20, 23).save(path);
  await using restored = dataset.iterator();
  await restored.restore(state);
  const after = await outcomesOf(restored);
  const wanted = await outcomesOf(dataset.iterator());
  assertEquals(wanted.length, 11);
  assertEquals([...before, ...after], wanted);
});

testInline("a pipeline that no worker can run is no end past ignoreErrors", async (start) => {
  await using cluster = await start({ workers: 2 });
  // There are no files to divide.
  const dataset = Dataset.range(4).distribute({ service: cluster, processingMode: "FILE" });
  assertEquals(await elementsBeforeFailure(dataset, /FILE/), []);
});

async function failThenReadAll(
  cluster: LocalCluster,
  path: string,
  processingMode: "OFF" | "DYNAMIC",
): Promise<void> {
  const mode = { service: cluster, jobName: "mended", processingMode };
  const dataset = neverComes(path).distribute(mode);
  assertEquals(await elementsBeforeFailure(dataset, /late/), [0, 1, 2, 3, 10, 11, 12, 13]);
  assert(/late/.test(await untilFailed(cluster)));
  await Dataset.range(20, 24).save(path);
  const wanted = [0, 10, 20, 30, 40].flatMap((x) => [x, x + 1, x + 2, x + 3]);
  assertEquals(await Array.fromAsync(dataset), wanted);
}

/** Why the only task cannot continue, once its worker has reported it. */
async function untilFailed(cluster: LocalCluster): Promise<string> {
  return await until(async () => {
    const { state, figures } = (await cluster.describe()).jobs[0]!.iterations[0]!.tasks[0]!;
    return state === "failed" && figures!.failure!;
  }, 5);
}
