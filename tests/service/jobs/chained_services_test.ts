/** Pipelines on workers that read from another service. */
import { sameOnRanks } from "../../../cli/python/order.ts";
import {
  Dataset,
  type DistributeOptions,
  LeatError,
  LocalCluster,
  type LocalClusterOptions,
  registerDataset,
  serveDispatcher,
  serveWorker,
  SHARD_HINT,
  shardingPolicy,
} from "../../../mod.ts";
import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "../../assert.ts";
import { NO_SPLITS, Sandbox, settingsOf } from "../../platform/sandbox/sandbox_lib.ts";
import { inFolder } from "../../lib/temp_folder.ts";
import { until } from "../../lib/until.ts";
import { sorted, untilForgotten, upTo } from "../lib/carriers.ts";

const QUIET = { logLevel: "off" } as const;

/** The service that pipelines on workers read from: other threads reach it. */
function first(options: LocalClusterOptions = {}): Promise<LocalCluster> {
  return LocalCluster.start({
    ...QUIET,
    carrier: "websocket",
    workers: 1,
    heartbeatMs: 50,
    ...options,
  });
}

/** The service whose workers process its elements, on threads of their own. */
function second(options: LocalClusterOptions = {}): Promise<LocalCluster> {
  const short = { heartbeatMs: 50, clientRefreshMs: 20 };
  return LocalCluster.start({
    ...QUIET,
    ...short,
    carrier: "inline",
    runners: "thread",
    ...options,
  });
}

/** Numbers of one job, for any reader. */
function raw(service: LocalCluster | string, count: number) {
  return Dataset.range(count).distribute({ service, processingMode: "DYNAMIC", jobName: "raw" });
}

Deno.test("workers that begin with one DYNAMIC job of another service get every element once, together", async () => {
  await using a = await first();
  await using b = await second({ workers: 2 });
  const doubled = raw(a, 300).map((x) => 2 * x).batch(4).distribute({ service: b });
  const numbers: number[] = [];
  await using batches = doubled.iterator();
  for await (const batch of batches) numbers.push(...batch.data as Float64Array);
  assertEquals(sorted(numbers), upTo(300).map((x) => 2 * x));
});

Deno.test("each repetition of a pipeline on workers is one of the job that it begins with", async () => {
  await using a = await second({ runners: "inline" });
  await using b = await second({ runners: "inline" });
  const dataset = raw(a, 40).map((x) => x + 1).distribute({ service: b });
  for (let repetition = 0; repetition < 2; repetition++) {
    assertEquals(sorted(await Array.fromAsync(dataset)), upTo(40).map((x) => x + 1));
  }
});

Deno.test("a pipeline on a worker reads a registered dataset of another service", async () => {
  await using a = await second({ runners: "inline", workers: 1 });
  await using b = await second({ runners: "inline", workers: 1 });
  const id = await registerDataset(a, Dataset.range(20));
  const dataset = Dataset.fromId<number>(a, id).map((x) => x * x).distribute({ service: b });
  assertEquals(sorted(await Array.fromAsync(dataset)), upTo(20).map((x) => x * x));
});

Deno.test("the stream of a DETERMINISTIC job reaches a pipeline on another service's worker in its order", async () => {
  await using a = await second({ runners: "inline" });
  await using b = await second({ runners: "inline", workers: 1 });
  const dataset = Dataset.range(100).shuffle(20).batch(7)
    .distribute({ service: a, processingMode: "DETERMINISTIC" });
  const expected = await Array.fromAsync(dataset.unbatch());
  assertEquals(await Array.fromAsync(dataset.unbatch().distribute({ service: b })), expected);
});

Deno.test("what another service gives has no splits: DYNAMIC and DETERMINISTIC refuse it with the remedy", () => {
  for (const processingMode of ["DYNAMIC", "DETERMINISTIC"] as const) {
    for (const begins of [raw("ws://a:1", 10), Dataset.fromId<number>("ws://a:1", "x")]) {
      const distribute = () =>
        begins.map((x) => x).distribute({ service: "ws://b:1", processingMode });
      const error = assertThrows(distribute, LeatError);
      assertEquals(error.code, "unimplemented");
      assertMatch(error.message, /jobName/);
    }
  }
});

const halves = shardingPolicy("halves", { shard: (d, { index, count }) => d.shard(count, index) });

Deno.test("policies that divide by number refuse what another service gives, with the remedy", () => {
  const service = "ws://b:1";
  const range = Dataset.range(10);
  const once = { service: "ws://a:1", processingMode: "DETERMINISTIC", jobName: "once" } as const;
  const begins = [
    raw("ws://a:1", 10),
    range.distribute({ service: "ws://a:1" }),
    range.distribute(once),
    Dataset.fromId<number>("ws://a:1", "x"),
  ];
  for (const dataset of begins) {
    const hinted = dataset.shard(SHARD_HINT, SHARD_HINT);
    const names = Dataset.textLines(dataset.map(String));
    const refused = [
      () => dataset.map((x) => x).distribute({ service, processingMode: "DATA" }),
      () => dataset.map((x) => x).distribute({ service, processingMode: "FILE_OR_DATA" }),
      () => dataset.map((x) => x).distribute({ service, processingMode: halves }),
      () => hinted.map((x) => x).distribute({ service, processingMode: "HINT" }),
      () => names.distribute({ service, processingMode: "FILE" }),
    ];
    for (const distribute of refused) {
      const error = assertThrows(distribute, LeatError);
      assertEquals(error.code, "unimplemented");
      assertMatch(error.message, /"DYNAMIC" and a jobName.*"DETERMINISTIC" and no jobName/);
    }
  }
  const beforeService = range.shard(SHARD_HINT, SHARD_HINT).distribute({ service: "ws://a:1" });
  beforeService.distribute({ service, processingMode: "HINT" });
  const files = Dataset.textLines(["a"]).distribute({ service: "ws://a:1" });
  for (const processingMode of ["FILE", "FILE_OR_DATA"] as const) {
    files.distribute({ service, processingMode });
  }
});

Deno.test("workers under DATA and a user's policy divide a DETERMINISTIC stream that each reads whole", async () => {
  await using a = await first();
  await using b = await second({ workers: 2 });
  for (const processingMode of ["DATA", halves] as const) {
    const stream = Dataset.range(30).shuffle(30).distribute({
      service: a,
      processingMode: "DETERMINISTIC",
    });
    const shares = stream.map((x) => x).distribute({ service: b, processingMode });
    assertEquals(sorted(await Array.fromAsync(shares)), upTo(30));
  }
});

/** A dataset whose function reads a service. */
function nested(service: string, options: Omit<DistributeOptions, "service">) {
  return Dataset.range(1).flatMap(
    (_, { Dataset, options }) => Dataset.range(30).shuffle(30, { seed: 1 }).distribute(options),
    { captures: { options: { ...options, service } } },
  );
}

Deno.test("what a function reads from a service in no fixed order is refused if elements are divided by number, despite ignoreErrors", async () => {
  await using a = await first({ workers: 2 });
  await using b = await second({ workers: 2 });
  const unordered = nested(a.address, { processingMode: "DYNAMIC", jobName: "once" });
  const ofRank = (dataset: Dataset<number>) =>
    new Dataset<number>(sameOnRanks(dataset.node)).shard(2, 1).ignoreErrors();
  const readers: Readonly<Record<string, Dataset<number>>> = {
    ranks: ofRank(unordered),
    "ranks, in a function of a function": ofRank(Dataset.range(1).interleave(() => unordered)),
    DATA: unordered.ignoreErrors().distribute({ service: b, processingMode: "DATA" }),
    policy: unordered.ignoreErrors().distribute({ service: b, processingMode: halves }),
    DETERMINISTIC: unordered.ignoreErrors()
      .distribute({ service: b, processingMode: "DETERMINISTIC" }),
  };
  for (const [name, dataset] of Object.entries(readers)) {
    await using iterator = dataset.iterator({ needsOrder: true });
    const outcome = await iterator.next().catch((error) => error);
    assert(outcome instanceof LeatError, `${name}: ${JSON.stringify(outcome)}`);
    assertEquals(outcome.code, "failed_precondition", name);
    assertMatch(outcome.message, /flatMap.*distribute.*"DETERMINISTIC" and no jobName/);
    assertEquals((await iterator.next()).done, true, name);
  }
  assertEquals(sorted(await Array.fromAsync(unordered)), upTo(30));
});

Deno.test("what a function reads from an unnamed DETERMINISTIC job can be divided by number", async () => {
  await using a = await first({ workers: 2 });
  await using b = await second({ workers: 2 });
  const ordered = nested(a.address, { processingMode: "DETERMINISTIC" });
  const ranks = [0, 1].map((rank) => {
    const ofRank = new Dataset<number>(sameOnRanks(ordered.node)).shard(2, rank);
    return Array.fromAsync(ofRank.iterator({ needsOrder: true }));
  });
  assertEquals(sorted((await Promise.all(ranks)).flat()), upTo(30));
  const shares = ordered.distribute({ service: b, processingMode: "DATA" });
  assertEquals(sorted(await Array.fromAsync(shares)), upTo(30));
});

Deno.test("cache(path) stores what a function reads from a service in no fixed order", async () => {
  await using a = await first();
  await inFolder(async (path) => {
    const stored = nested(a.address, { processingMode: "DYNAMIC", jobName: "once" }).cache(path);
    const filled = await Array.fromAsync(stored);
    assertEquals(sorted(filled), upTo(30));
    assertEquals(await Array.fromAsync(stored), filled);
  });
});

Deno.test("a worker refuses a registered pipeline that divides what another service gives", async () => {
  await using a = await first();
  await using b = await second({ workers: 1 });
  const id = await registerDataset(b, raw(a, 10));
  const shares = Dataset.fromId(b, id, { processingMode: "DATA" });
  const error = await assertRejects(() => Array.fromAsync(shares), LeatError);
  assertEquals(error.code, "unimplemented");
});

Deno.test("a worker of another cluster refuses a LocalCluster without a socket, with the remedy", async () => {
  await using a = await second({ workers: 1 });
  await using b = await second({ workers: 1 });
  const dataset = raw(a, 10).map((x) => x).distribute({ service: b });
  const error = await assertRejects(() => Array.fromAsync(dataset), LeatError);
  assertEquals(error.code, "invalid_argument");
  assertMatch(error.message, /LocalCluster.*serveDispatcher/);
});

Deno.test("a worker opens another service with the token that its operator has named for it", async () => {
  await using dispatcher = await serveDispatcher({ ...QUIET, token: "open-sesame" });
  const { address } = dispatcher;
  await using _worker = await serveWorker({ ...QUIET, dispatcher: address, token: "open-sesame" });
  const dataset = (b: LocalCluster) => raw(address, 30).map((x) => x).distribute({ service: b });
  {
    await using b = await second({ workers: 1 });
    const error = await assertRejects(() => Array.fromAsync(dataset(b)), LeatError);
    assertEquals(error.code, "unauthenticated");
  }
  await using b = await second({
    workers: 1,
    services: { [`${address}/`]: { token: "open-sesame" } },
  });
  assertEquals(sorted(await Array.fromAsync(dataset(b))), upTo(30));
});

Deno.test("a confined pipeline reads from a service whose hosts are granted", async () => {
  await using a = await first();
  await using sandbox = await Sandbox.open({}, () => ({ net: ["127.0.0.1"] }));
  const came = await sandbox.elements(raw(a, 30).map((x) => x + 1));
  const values = came.map((one) => "value" in one ? one.value as number : one.message);
  assertEquals(sorted(values as number[]), upTo(30).map((x) => x + 1));
});

Deno.test("workers that begin with one DYNAMIC job of their own service get every element once, together", async () => {
  await using cluster = await second({ workers: 2, runners: "inline" });
  const dataset = raw(cluster, 100).map((x) => x + 1).distribute({ service: cluster });
  assertEquals(sorted(await Array.fromAsync(dataset)), upTo(100).map((x) => x + 1));
});

Deno.test("jobs that read themselves or each other are forgotten once no program reads them", async () => {
  for (const runners of ["inline", "thread"] as const) {
    await using a = await first({ runners, jobGcTimeoutMs: 200 });
    for (const [id, read] of [["x", "x"], ["y", "z"], ["z", "y"]] as const) {
      const endless = Dataset.fromId<number>(a.address, read, { jobName: `job of ${read}` });
      await registerDataset(a, endless.filter(() => false), { datasetId: id });
    }
    for (const [id, name] of [["x", "job of x"], ["y", "job of z"]] as const) {
      const iterator = Dataset.fromId<number>(a, id).iterator();
      const reading = iterator.next().catch(() => {});
      await until(async () => {
        const job = (await a.describe()).jobs.find((job) => job.name === name);
        return job?.iterations[0]?.clients === 2;
      });
      await iterator.return();
      await reading;
    }
    await untilForgotten(a);
  }
});

Deno.test("a confined pipeline reads services as its task, which it cannot choose", async () => {
  await using a = await first();
  const { clusterId } = await a.describe();
  await using sandbox = await Sandbox.open({}, () => ({ net: ["127.0.0.1"] }));
  const forTask = { clusterId, taskId: 99 };
  const runner = sandbox.runners.start({ ...settingsOf(raw(a, 30)), forTask }, NO_SPLITS);
  const outcome = await runner.next();
  assert(outcome.kind === "error");
  assertMatch(outcome.error.message, /Task 99 has ended: its pipeline reads nothing more/);
  runner.dispose();
});

Deno.test("a confined pipeline between two repetitions of a DETERMINISTIC job is refused the next if another reader was restored", async () => {
  await using a = await first();
  await using sandbox = await Sandbox.open({}, () => ({ net: ["127.0.0.1"] }));
  const job = () =>
    Dataset.range(2)
      .distribute({ service: a, processingMode: "DETERMINISTIC", jobName: "stream" });
  await using restored = job().iterator();
  const beginning = await restored.save();
  const endless = job().concatenate(Dataset.range(1)).repeat();
  const runner = sandbox.runners.start(settingsOf(endless), NO_SPLITS);
  // The last of them is not an element of the job: it is read to its end.
  for (let i = 0; i < 3; i++) assertEquals((await runner.next()).kind, "element");
  await restored.restore(beginning);
  assertEquals(await restored.next(), { done: false, value: 0 });
  const outcome = await runner.next();
  assert(outcome.kind === "error");
  assertMatch(outcome.error.message, /was restored by another reader/);
  runner.dispose();
});

Deno.test("a confined pipeline begins with no service that is not granted, nor with its workers", async () => {
  await using a = await first();
  const { host } = new URL(a.address);
  for (const net of [[], [host]]) {
    await using sandbox = await Sandbox.open({}, () => ({ net }));
    const [came] = await sandbox.elements(raw(a, 30).map((x) => x + 1));
    const { code, message } = came as { code: string; message: string };
    assertEquals(code, "permission_denied", message);
    assertMatch(message, /--allow-net=127\.0\.0\.1:\d+/);
  }
});

Deno.test("the error of a service without the requested dataset is reported despite ignoreErrors, not as an end", async () => {
  await using a = await second({ runners: "inline", workers: 1 });
  await using b = await second({ runners: "inline", workers: 2 });
  const begins = Dataset.fromId<number>(a, "unknown").map((x) => x);
  const error = await assertRejects(
    () => Array.fromAsync(begins.distribute({ service: b }).ignoreErrors()),
    LeatError,
  );
  assertEquals(error.code, "not_found");
});

Deno.test("the loss of a service below another is reported despite ignoreErrors, not as an end", async () => {
  const a = await second({ runners: "inline", workers: 1 });
  await using b = await second({ runners: "inline", workers: 1 });
  const dataset = raw(a, 1e6).batch(10).distribute({ service: b }).ignoreErrors();
  await using iterator = dataset.iterator();
  await iterator.next();
  await a.close();
  const rest = async () => {
    while (!(await iterator.next()).done);
  };
  await assertRejects(rest, LeatError);
});
