/** Workers that end, or whose links are closed or lost: when they are lost. */
import type { DispatcherConfig } from "../../../../actors/dispatcher/config.ts";
import type { FencedRef } from "../../../../actors/runtime/ref.ts";
import type { WorkerProtocol } from "../../../../actors/worker/protocol.ts";
import { assertEquals } from "../../../assert.ts";
import { settle, TestCluster } from "../lib.ts";
import { CLOSED, LOST, RemoteMember, SOON } from "./remote_member.ts";

class RemoteWorker extends RemoteMember {
  static async start(config: DispatcherConfig = {}): Promise<RemoteWorker> {
    const worker = new RemoteWorker(await TestCluster.start(config), "worker");
    worker.join();
    await worker.heartbeat();
    return worker;
  }

  async heartbeat() {
    const ref = this.ref as FencedRef<WorkerProtocol>;
    const request = { name: "w", worker: ref, tags: [], tasks: [] };
    return await this.context.ask(this.cluster.dispatcher, "workerHeartbeat", request, SOON);
  }

  /** Whether the worker still counts so long after, in ms, for which it says nothing. */
  async isAliveAfter(ms: number): Promise<boolean> {
    await this.cluster.world.advance(ms);
    const { workers } = await this.cluster.ask("describe", null);
    return workers.some(({ name, alive }) => name === "w" && alive);
  }
}

Deno.test("a worker whose link was closed at its end is lost after a grace", async () => {
  await using worker = await RemoteWorker.start();
  await worker.part(CLOSED);
  assertEquals(await worker.isAliveAfter(9_000), true);
  assertEquals(await worker.isAliveAfter(5_000), false);
});

Deno.test("a worker that comes back within the grace stays, as often as its link is closed", async () => {
  await using worker = await RemoteWorker.start();
  for (let times = 0; times < 3; times++) {
    await worker.part(CLOSED);
    assertEquals(await worker.isAliveAfter(9_000), true);
    worker.join();
    assertEquals(await worker.isAliveAfter(40_000), true);
    await worker.heartbeat();
  }
});

Deno.test("a worker whose link was lost without a close is lost by the worker timeout", async () => {
  await using worker = await RemoteWorker.start();
  await worker.part(LOST);
  assertEquals(await worker.isAliveAfter(55_000), true);
  assertEquals(await worker.isAliveAfter(10_000), false);
});

Deno.test("a silent worker whose link stays open is lost by the worker timeout", async () => {
  await using worker = await RemoteWorker.start();
  assertEquals(await worker.isAliveAfter(55_000), true);
  assertEquals(await worker.isAliveAfter(10_000), false);
});

Deno.test("a worker that ended while its link was closed is lost after a grace when its node comes back", async () => {
  await using worker = await RemoteWorker.start();
  await worker.part(CLOSED);
  await worker.end();
  assertEquals(await worker.isAliveAfter(5_000), true);
  worker.join();
  await settle();
  assertEquals(await worker.isAliveAfter(9_000), true);
  assertEquals(await worker.isAliveAfter(5_000), false);
});

Deno.test("a worker that comes back after it was lost is registered again", async () => {
  await using worker = await RemoteWorker.start();
  await worker.part(CLOSED);
  assertEquals(await worker.isAliveAfter(15_000), false);
  worker.join();
  await worker.heartbeat();
  assertEquals(await worker.isAliveAfter(40_000), true);
});

Deno.test("after a restart of the dispatcher, workers have their whole timeout", async () => {
  await using worker = await RemoteWorker.start();
  await worker.part(CLOSED);
  await worker.cluster.restart();
  assertEquals(await worker.isAliveAfter(55_000), true);
  assertEquals(await worker.isAliveAfter(10_000), false);
});

Deno.test("a workerGraceMs of workerTimeoutMs leaves the timeout alone", async () => {
  await using worker = await RemoteWorker.start({ workerGraceMs: 60_000 });
  await worker.part(CLOSED);
  assertEquals(await worker.isAliveAfter(55_000), true);
  assertEquals(await worker.isAliveAfter(10_000), false);
});

Deno.test("time in which the dispatcher stood still is none of a worker's grace", async () => {
  await using worker = await RemoteWorker.start({ workerGraceMs: 1_000 });
  await worker.part(CLOSED);
  worker.cluster.world.stall(5_000);
  assertEquals(await worker.isAliveAfter(500), true);
  assertEquals(await worker.isAliveAfter(2_000), false);
});

Deno.test("a worker with a closed link is dialled until its grace is over", async () => {
  await using worker = await RemoteWorker.start();
  const dialled: string[] = [];
  const { system } = worker.cluster;
  const stop = system.inspect((event) => {
    if (event.type !== "send" || event.envelope.kind !== "tell") return;
    if (event.envelope.target.node === "remote") dialled.push(event.envelope.method);
  });
  await worker.part(CLOSED);
  await worker.isAliveAfter(15_000);
  stop();
  assertEquals(new Set(dialled), new Set(["wake"]));
});
