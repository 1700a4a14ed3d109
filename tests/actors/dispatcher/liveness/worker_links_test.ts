/** Workers that end, or whose links are closed or lost: when they are lost. */
import type { DispatcherConfig } from "../../../../actors/dispatcher/config.ts";
import type { ActorContext } from "../../../../actors/runtime/actor.ts";
import { closedThere, type Link } from "../../../../actors/runtime/link.ts";
import type { FencedRef } from "../../../../actors/runtime/ref.ts";
import { ActorSystem } from "../../../../actors/runtime/system.ts";
import type { WorkerProtocol } from "../../../../actors/worker/protocol.ts";
import { LeatError } from "../../../../core/error.ts";
import { inlinePair } from "../../../../transport/inline.ts";
import { assertEquals } from "../../../assert.ts";
import { settle, TestCluster } from "../lib.ts";

const LOST = new LeatError("unavailable", "it has fallen silent");
const CLOSED = closedThere(new LeatError("unavailable", "its process has ended"));
const SOON = { timeoutMs: 60_000 };

/** A worker on a node of its own, beside a dispatcher. */
class RemoteWorker implements AsyncDisposable {
  readonly cluster: TestCluster;
  readonly #system: ActorSystem;
  readonly #ref: FencedRef<WorkerProtocol>;
  #context: ActorContext | undefined;
  #link: Link | undefined;

  static async start(config: DispatcherConfig = {}): Promise<RemoteWorker> {
    const worker = new RemoteWorker(await TestCluster.start(config));
    worker.join();
    await worker.heartbeat();
    return worker;
  }

  private constructor(cluster: TestCluster) {
    this.cluster = cluster;
    this.#system = new ActorSystem({ node: "remote", world: cluster.world });
    this.#ref = this.#system.spawn<WorkerProtocol>({
      name: "worker",
      create: (context: ActorContext) => {
        this.#context = context;
        return { handlers: { wake: () => null } as never };
      },
    });
  }

  /** Opens a link between the two nodes. */
  join(): void {
    const { system, world } = this.cluster;
    const [here, there] = inlinePair(world, this.#system.id, world, system.id);
    this.#system.attach(here);
    system.attach(there);
    this.#link = here;
  }

  /** The link is gone, for that reason as the dispatcher has it. */
  async part(reason: LeatError): Promise<void> {
    this.#link!.close(reason);
    await settle();
  }

  async heartbeat() {
    const request = { name: "w", worker: this.#ref, tags: [], tasks: [] };
    return await this.#context!.ask(this.cluster.dispatcher, "workerHeartbeat", request, SOON);
  }

  end(): Promise<void> {
    return this.#system.stopActor("worker");
  }

  /** Whether the worker still counts so long after, in ms, for which it says nothing. */
  async isAliveAfter(ms: number): Promise<boolean> {
    await this.cluster.world.advance(ms);
    const { workers } = await this.cluster.ask("describe", null);
    return workers.some(({ name, alive }) => name === "w" && alive);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#system.stop();
    await this.cluster[Symbol.asyncDispose]();
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
