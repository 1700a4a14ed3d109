/**
 * Runs of consumers: those that were started together read one stream together, and those of an earlier
 * start are put out.
 */
import { joinIteration } from "../../../../actors/client/first_answer.ts";
import { READ_BY_ANOTHER, TO_FOLLOW } from "../../../../actors/dispatcher/protocol.ts";
import { LeatError } from "../../../../core/error.ts";
import { assertEquals, assertStringIncludes } from "../../../assert.ts";
import { orderedNews, settle, tableOf, TestCluster } from "../lib.ts";

const ORDERED = {
  processingMode: "DETERMINISTIC",
  ordered: { seed: "0000000000000001", shuffled: false },
} as const;
const WINDOW_SPLITS = 4;
const SPLITS = 9;

/** A job of two consumers. */
class Bench implements AsyncDisposable {
  readonly cluster: TestCluster;
  readonly #datasetId: string;

  private constructor(cluster: TestCluster, datasetId: string) {
    this.cluster = cluster;
    this.#datasetId = datasetId;
  }

  static async start(): Promise<Bench> {
    const cluster = await TestCluster.start({ windowSplits: WINDOW_SPLITS });
    return new Bench(cluster, await cluster.dataset());
  }

  request(
    runId: string | undefined,
    consumerIndex: number,
    { repetition = 0, startAt, iterator }: {
      repetition?: number;
      startAt?: number;
      iterator?: number;
    } = {},
  ) {
    const job = { jobName: "job", numConsumers: 2, consumerIndex, repetition };
    return {
      ...this.cluster.openRequest(this.#datasetId, { ...ORDERED, ...job }),
      ...(runId === undefined ? {} : { runId }),
      ...(startAt === undefined ? {} : { startAt }),
      ...(iterator === undefined ? {} : { iterator }),
    };
  }

  /** Joins as clients do. */
  open(...at: Parameters<Bench["request"]>) {
    return joinIteration(
      this.request(...at),
      (asked) => this.cluster.ask("openIteration", asked),
    );
  }

  async refused(...at: Parameters<Bench["request"]>): Promise<LeatError> {
    return await this.open(...at).then(
      () => Promise.reject(new Error("It was let in")),
      (error) => LeatError.from(error),
    );
  }

  async isThere({ clientId }: { readonly clientId: number }): Promise<boolean> {
    const [answer] = await Promise.allSettled([this.cluster.ask("clientHeartbeat", { clientId })]);
    return answer.status === "fulfilled";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster[Symbol.asyncDispose]();
  }
}

Deno.test("all consumers of a run read one iteration, whichever of an earlier restart lives and whichever comes first", async () => {
  for (const [first, second] of [[0, 1], [1, 0]] as const) {
    await using bench = await Bench.start();
    const old = [await bench.open("1", 0), await bench.open("1", 1)];
    // A restart that comes to nothing: its first consumer never comes.
    const stray = await bench.open("2", 1, { startAt: 5 });
    for (const client of old) assertEquals(await bench.isThere(client), false);
    const one = await bench.open("3", first, { startAt: 5 });
    assertEquals(await bench.isThere(stray), false);
    const other = await bench.open("3", second, { startAt: 5 });
    assertEquals(other.iterationId, one.iterationId);
    assertEquals([await bench.isThere(one), await bench.isThere(other)], [true, true]);
  }
});

Deno.test("readers of a run that was followed are refused, in every repetition and after a restart", async () => {
  await using bench = await Bench.start();
  for (const runId of ["1", "2"]) {
    await bench.open(runId, 0, { startAt: 5 });
    await bench.cluster.crash();
  }
  for (const repetition of [0, 1]) {
    for (const startAt of [{}, { startAt: 5 }]) {
      const { code, details, message } = await bench.refused("1", 1, { repetition, ...startAt });
      assertEquals([code, details?.["reason"]], ["failed_precondition", READ_BY_ANOTHER]);
      assertStringIncludes(message, '"2"');
    }
  }
  // Who names no run does not read beside those that do.
  assertEquals((await bench.refused(undefined, 1)).details?.["reason"], READ_BY_ANOTHER);
});

Deno.test("a late request of a run that nobody has heard of puts nobody out", async () => {
  await using bench = await Bench.start();
  const late = bench.request("1", 0);
  const { clientId } = await bench.open("2", 0);
  const { details } = await bench.cluster.refused("openIteration", late);
  assertEquals(details, { reason: TO_FOLLOW, follows: clientId });
  assertEquals(await bench.isThere({ clientId }), true);
});

Deno.test("a run that begins at the beginning puts out readers that name none", async () => {
  await using bench = await Bench.start();
  const old = [await bench.open(undefined, 0), await bench.open(undefined, 1)];
  const begun = await bench.open("1", 0);
  assertEquals((await bench.open("1", 1)).iterationId, begun.iterationId);
  for (const client of old) assertEquals(await bench.isThere(client), false);
});

Deno.test("a consumer that comes to an epoch which the others of its run are done with does not wait for them", async () => {
  await using bench = await Bench.start();
  const { cluster } = bench;
  const worker = cluster.worker("a", tableOf(SPLITS));
  // The first is restored at the epoch's end, and is in the next one when the second is restored.
  const ended = await bench.open("1", 0, { startAt: SPLITS });
  await cluster.ask("releaseClient", { clientId: ended.clientId });
  const ahead = await bench.open("1", 0, { repetition: 1 });
  const { clientId, iterationId } = await bench.open("1", 1, { startAt: 2 });
  await cluster.restart();
  await worker.heartbeat();
  await settle();
  const tasks = [...worker.tasks.keys()];
  const sequences: (number | null | undefined)[] = [];
  // Tasks are made in the order of their iterations.
  const taskId = tasks[iterationId > ahead.iterationId ? 1 : 0]!;
  for (let number = 1; number <= SPLITS - 2; number++) {
    const request = { taskId, number, source: 0, repetition: 0 };
    const { split } = await cluster.ask("getSplit", request);
    sequences.push(split?.sequence);
    await cluster.ask("clientHeartbeat", {
      clientId,
      report: { kind: "ordered", mark: split!.sequence! + 1, done: [] },
    });
  }
  assertEquals(sequences, [2, 3, 4, 5, 6, 7, 8]);
  const { left } = orderedNews(await cluster.ask("clientHeartbeat", { clientId }));
  assertEquals(left, [0]);
  // And the other way round: who goes on to a later epoch is waited for in none before.
  await cluster.ask("releaseClient", { clientId });
  await bench.open("1", 1, { repetition: 1 });
  assertEquals(await bench.isThere(ahead), true);
});

Deno.test("a consumer in a pass of an older iterator does not wait for those in passes of a later one", async () => {
  // The numbers of passes of later iterators have no order.
  const passes = [
    { repetition: 1 },
    { repetition: 0x9e3779b1, iterator: 1 },
    { repetition: 0x3c6ef362, iterator: 2 },
  ];
  for (const [older, later] of [[0, 1], [0, 2], [1, 2]] as const) {
    for (const isFirst of [true, false]) {
      await using bench = await Bench.start();
      const { cluster } = bench;
      const openings = [
        () => bench.open("1", 0, { ...passes[later]!, startAt: 0 }),
        () => bench.open("1", 1, { ...passes[older]!, startAt: 2 }),
      ];
      const clients = [];
      for (const opens of isFirst ? openings : openings.toReversed()) clients.push(await opens());
      const [ahead, behind] = isFirst ? clients : clients.toReversed();
      await cluster.restart();
      const leftAt = async ({ clientId }: { readonly clientId: number }) =>
        orderedNews(await cluster.ask("clientHeartbeat", { clientId })).left;
      // The one in the older pass is waited for in the later one.
      assertEquals([await leftAt(behind!), await leftAt(ahead!)], [[0], []]);
    }
  }
});

Deno.test("within a run no consumer takes over from another, nor comes back to what it has left", async () => {
  await using bench = await Bench.start();
  const [one, other] = [
    await bench.open("1", 0, { startAt: 3 }),
    await bench.open("1", 1, { startAt: 3 }),
  ];
  assertStringIncludes((await bench.refused("1", 1, { startAt: 2 })).message, "is held by");
  await bench.cluster.ask("releaseClient", { clientId: other.clientId });
  assertStringIncludes((await bench.refused("1", 1, { startAt: 2 })).message, "Restore all");
  assertEquals(await bench.isThere(one), true);
});
