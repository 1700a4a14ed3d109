/**
 * Which workers a client reads: those of its own process by direct call, remote ones, those with a
 * tag.
 */
import {
  Dataset,
  type DispatcherServer,
  type DistributeOptions,
  LeatError,
  serveDispatcher,
  serveWorker,
  type WorkerServerConfig,
} from "../../../mod.ts";
import { inlineRunners } from "../../../platform/threads/inline_runners.ts";
import { ServiceNode } from "../../../platform/nodes/service_node.ts";
import { startWorkerRole } from "../../../server/worker_role.ts";
import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "../../assert.ts";
import { numbersOf, sorted, testInline, upTo } from "../lib/carriers.ts";
import { until } from "../../lib/until.ts";

const QUIET = { logLevel: "off" } as const;

function serve(dispatcher: DispatcherServer, config: Partial<WorkerServerConfig> = {}) {
  return serveWorker({ ...QUIET, dispatcher: dispatcher.address, heartbeatMs: 50, ...config });
}

/** A worker that claims to be in another process. */
function serveElsewhere({ address }: DispatcherServer, tags: string[] = []) {
  const node = new ServiceNode(QUIET);
  const playing = startWorkerRole(node.system, {
    role: "worker",
    dispatcher: address,
    config: { name: "elsewhere", process: "another process", tags, heartbeatMs: 50 },
  }, { runners: inlineRunners({}) });
  return {
    async [Symbol.asyncDispose]() {
      await node.stop();
      await playing.close();
    },
  };
}

/** Waits until the dispatcher has so many workers. */
async function untilRegistered(dispatcher: DispatcherServer, count: number): Promise<void> {
  await until(async () => (await dispatcher.describe()).workers.length >= count, 2);
}

/** The names of the workers with a task of the dispatcher's only iteration. */
async function workersAtWork(dispatcher: DispatcherServer): Promise<string[]> {
  const [job] = (await dispatcher.describe()).jobs;
  return job!.iterations[0]!.tasks.map(({ worker }) => worker).sort();
}

/** Waits until these have one; some learn of it later than others. */
async function untilAtWork(dispatcher: DispatcherServer, names: string[]): Promise<void> {
  await until(async () => (await workersAtWork(dispatcher)).length >= names.length, 2);
  assertEquals(await workersAtWork(dispatcher), names);
}

function numbers(
  { address }: DispatcherServer,
  options: Partial<DistributeOptions> = {},
): Dataset<unknown> {
  return Dataset.range(400).batch(4).distribute({
    service: address,
    processingMode: "DYNAMIC",
    maxOutstandingRequests: 1,
    ...options,
  });
}

Deno.test("a worker of this process and one elsewhere draw from one split provider: every element once", async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  await using _here = await serve(dispatcher, { local: true, name: "here" });
  await using _there = serveElsewhere(dispatcher);
  await untilRegistered(dispatcher, 2);
  await using batches = numbers(dispatcher).iterator();
  const first = await batches.next();
  await untilAtWork(dispatcher, ["elsewhere", "here"]);
  const rest = await numbersOf(batches);
  assertEquals(sorted([...(first.value as { data: Float64Array }).data, ...rest]), upTo(400));
});

Deno.test("the stream of a DETERMINISTIC job is the same from a worker of this process and one elsewhere", async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  await using _here = await serve(dispatcher, { local: true });
  await using _there = serveElsewhere(dispatcher);
  await untilRegistered(dispatcher, 2);
  const stream = await numbersOf(numbers(dispatcher, { processingMode: "DETERMINISTIC" }));
  assertEquals(stream, upTo(400));
});

Deno.test('targetWorkers "local" gives all elements from this process, and no other worker a task', async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  await using _there = serveElsewhere(dispatcher);
  await using _here = await serve(dispatcher, { name: "here" });
  await untilRegistered(dispatcher, 2);
  await using batches = numbers(dispatcher, { targetWorkers: "local" }).iterator();
  const first = await batches.next();
  assertEquals(await workersAtWork(dispatcher), ["here"]);
  const rest = await numbersOf(batches);
  assertEquals(sorted([...(first.value as { data: Float64Array }).data, ...rest]), upTo(400));
});

Deno.test('targetWorkers "local" without a worker in this process is refused with the remedy', async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  await using _there = serveElsewhere(dispatcher);
  await using batches = numbers(dispatcher, { targetWorkers: "local" }).iterator();
  const error = await assertRejects(() => batches.next(), LeatError);
  assertEquals(error.code, "invalid_argument");
  assertMatch(error.message, /serveWorker\(\{ dispatcher, local: true \}\)/);
});

Deno.test("a worker of this process is read without its address, which may lead nowhere", async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  await using here = await serve(dispatcher, { advertise: "192.0.2.1" });
  assertMatch(here.address, /192\.0\.2\.1/);
  for (const targetWorkers of ["auto", "local", "any"] as const) {
    const batches = numbers(dispatcher, { targetWorkers });
    assertEquals(sorted(await numbersOf(batches)), upTo(400), targetWorkers);
  }
});

Deno.test('workers of other processes with the tag COLOCATED serve only clients that ask for "any"', async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  await using _there = serveElsewhere(dispatcher, ["COLOCATED"]);
  await using _here = await serve(dispatcher, { name: "here", tags: ["COLOCATED"] });
  await untilRegistered(dispatcher, 2);
  const expected = { auto: ["here"], any: ["elsewhere", "here"] };
  for (const targetWorkers of ["auto", "any"] as const) {
    await using batches = numbers(dispatcher, { targetWorkers }).iterator();
    await batches.next();
    await untilAtWork(dispatcher, expected[targetWorkers]);
  }
});

Deno.test("a worker with local: true accepts no options of listening", async () => {
  const config = { ...QUIET, dispatcher: "ws://127.0.0.1:1", local: true, port: 5051 };
  const error = await assertRejects(() => serveWorker(config), LeatError);
  assertEquals(error.code, "invalid_argument");
  assertMatch(error.message, /port/);
});

Deno.test("a worker's empty tag is refused", async () => {
  const config = { ...QUIET, dispatcher: "ws://127.0.0.1:1", tags: [""] };
  assertEquals(
    (await assertRejects(() => serveWorker(config), LeatError)).code,
    "invalid_argument",
  );
});

Deno.test("distribute refuses invalid targets", () => {
  const service = "ws://127.0.0.1:1";
  const wrong: Record<string, unknown>[] = [
    { targetWorkers: "near" },
    { targetWorkers: "local", jobName: "j", numConsumers: 2, consumerIndex: 0 },
    { targetTags: "gpu" },
    { targetTags: [""] },
  ];
  for (const options of wrong) {
    const distribute = () =>
      Dataset.range(1).repeat().distribute({ service, ...options } as DistributeOptions);
    assertEquals(assertThrows(distribute, LeatError).code, "invalid_argument");
  }
});

testInline("targetTags chooses the workers that carry all of them", async (start) => {
  await using cluster = await start({ workers: 1 });
  await cluster.addWorker({ tags: ["big"] });
  const chosen = await cluster.addWorker({ tags: ["big", "decodes"] });
  const description = await cluster.describe();
  assertEquals(description.workers.map(({ tags }) => tags), [[], ["big"], ["big", "decodes"]]);
  await using batches = Dataset.range(400).batch(4).distribute({
    service: cluster,
    processingMode: "DYNAMIC",
    targetTags: ["decodes", "big"],
  }).iterator();
  const first = await batches.next();
  const [job] = (await cluster.describe()).jobs;
  const names = job!.iterations[0]!.tasks.map(({ worker }) => worker);
  assertEquals(names, [description.workers[chosen]!.name]);
  const rest = await numbersOf(batches);
  assertEquals(sorted([...(first.value as { data: Float64Array }).data, ...rest]), upTo(400));
});

testInline("a job that wants a tag nobody carries waits for a worker with it", async (start) => {
  await using cluster = await start({ workers: 1 });
  const reading = numbersOf(
    Dataset.range(40).batch(4).distribute({
      service: cluster,
      processingMode: "DYNAMIC",
      targetTags: ["big"],
    }),
  );
  await until(async () => (await cluster.describe()).jobs.length > 0);
  await cluster.addWorker({ tags: ["big"] });
  assert((await reading).length === 40);
});
