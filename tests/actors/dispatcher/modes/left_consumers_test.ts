/** DETERMINISTIC: consumers that have left their iterator, in its other passes and chains. */
import { joinIteration } from "../../../../actors/client/first_answer.ts";
import { assertEquals } from "../../../assert.ts";
import { orderedNews, TestCluster } from "../lib.ts";

const ORDERED = {
  processingMode: "DETERMINISTIC",
  ordered: { seed: "0000000000000001", shuffled: false },
} as const;
const TIMEOUT_MS = 10_000;

interface Joined {
  readonly clientId: number;
  readonly clusterId: string;
}

/** Two consumers of a stream of several chains. */
class Bench implements AsyncDisposable {
  readonly cluster: TestCluster;
  readonly #datasetId: string;
  readonly #runId: string | undefined;
  /** The client of each consumer that joined last. */
  #last: Joined[] = [];

  private constructor(cluster: TestCluster, datasetId: string, runId: string | undefined) {
    this.cluster = cluster;
    this.#datasetId = datasetId;
    this.#runId = runId;
  }

  static async start(runId?: string): Promise<Bench> {
    const cluster = await TestCluster.start({ clientTimeoutMs: TIMEOUT_MS });
    return new Bench(cluster, await cluster.dataset(), runId);
  }

  /** From now on consumers open as those of another start. */
  startAnew(): void {
    this.#last = [];
  }

  async open(
    consumerIndex: number,
    { chain = "a", repetition = 0, ...more }: {
      chain?: string;
      repetition?: number;
      iterator?: number;
      startAt?: number;
    } = {},
  ): Promise<Joined> {
    const job = { jobName: chain, numConsumers: 2, consumerIndex, repetition };
    const last = this.#last[consumerIndex];
    const request = {
      ...this.cluster.openRequest(this.#datasetId, { ...ORDERED, ...job }),
      ...{ stream: "s", ...more },
      ...(last === undefined ? {} : { lastReader: last }),
      ...(this.#runId === undefined ? {} : { runId: this.#runId }),
    };
    const { clientId, clusterId } = await joinIteration(
      request,
      (asked) => this.cluster.ask("openIteration", asked),
    );
    return this.#last[consumerIndex] = { clientId, clusterId };
  }

  async end({ clientId }: Joined, more: { leaves?: true } = {}): Promise<void> {
    await this.cluster.ask("releaseClient", { clientId, ...more });
  }

  /** Time passes in which all clients but these are silent for too long. */
  async timeOut(alive: readonly Joined[]): Promise<void> {
    for (let i = 0; i < 3; i++) {
      await this.cluster.world.advance(TIMEOUT_MS * 0.6);
      for (const client of alive) await this.leftAt(client);
    }
  }

  /** The consumers for which the client's iteration does not wait. */
  async leftAt({ clientId }: Joined): Promise<readonly number[]> {
    return orderedNews(await this.cluster.ask("clientHeartbeat", { clientId })).left;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster[Symbol.asyncDispose]();
  }
}

for (const runId of [undefined, "run"]) {
  const kind = runId === undefined ? "without a run" : "of a run";

  Deno.test(`no pass or chain of its iterator waits for a consumer that has left it or has died, ${kind}`, async () => {
    for (const how of ["leaves", "dies"]) {
      await using bench = await Bench.start(runId);
      const first = await bench.open(0);
      const leaver = await bench.open(1);
      const passBefore = await bench.open(0, { repetition: 1 });
      const chainBefore = await bench.open(0, { chain: "b" });
      const before = [first, passBefore, chainBefore];
      for (const client of before.slice(1)) assertEquals(await bench.leftAt(client), []);
      if (how === "leaves") await bench.end(leaver, { leaves: true });
      else await bench.timeOut(before);
      await bench.cluster.restart();
      for (const client of before) assertEquals(await bench.leftAt(client), [1], how);
      for (const client of before) await bench.end(client);
      for (const at of [{ repetition: 2 }, { chain: "c" }, { chain: "b", repetition: 1 }]) {
        assertEquals(await bench.leftAt(await bench.open(0, at)), [1], how);
      }
    }
  });

  Deno.test(`a consumer that has ended a pass is waited for in the next, and one that has left in its next iterator, ${kind}`, async () => {
    await using bench = await Bench.start(runId);
    await bench.end(await bench.open(0));
    const [pass, other] = [await bench.open(0, { repetition: 1 }), await bench.open(1)];
    await bench.end(other);
    assertEquals(await bench.leftAt(pass), []);
    const leaver = await bench.open(1, { repetition: 1 });
    await bench.end(leaver, { leaves: true });
    assertEquals(await bench.leftAt(pass), [1]);
    const next = { iterator: 1, repetition: 0x9e3779b1 };
    assertEquals(await bench.leftAt(await bench.open(0, next)), []);
    // That it reads the next iterator does not mean that it has come back to this one.
    await bench.open(1, next);
    assertEquals(await bench.leftAt(await bench.open(0, { repetition: 2 })), [1]);
    assertEquals(await bench.leftAt(await bench.open(0, { ...next, chain: "b" })), []);
  });

  Deno.test(`a consumer that reads another pass or chain has not died with an earlier client, ${kind}`, async () => {
    await using bench = await Bench.start(runId);
    const [first] = [await bench.open(0), await bench.open(1)];
    const [pass, own] = [
      await bench.open(0, { repetition: 1 }),
      await bench.open(1, { repetition: 1 }),
    ];
    await bench.timeOut([first, pass, own]);
    assertEquals(await bench.leftAt(first), [1]);
    assertEquals(await bench.leftAt(await bench.open(0, { chain: "b" })), []);
  });
}

Deno.test("consumers that are started anew or restored are waited for, whenever clients of an earlier start end", async () => {
  for (const at of [{}, { startAt: 3 }]) {
    for (const endsFirst of [true, false]) {
      await using bench = await Bench.start();
      for (const client of [await bench.open(0), await bench.open(1)]) await bench.end(client);
      const late = [await bench.open(0, { chain: "b" }), await bench.open(1, { chain: "b" })];
      bench.startAnew();
      const first = await bench.open(0, at);
      if (endsFirst) await bench.end(late[1]!, { leaves: true });
      assertEquals(await bench.leftAt(first), []);
      const second = await bench.open(1, at);
      await bench.timeOut([first, second]);
      assertEquals([await bench.leftAt(first), await bench.leftAt(second)], [[], []]);
      assertEquals(await bench.leftAt(await bench.open(0, { chain: "b" })), []);
    }
  }
});
