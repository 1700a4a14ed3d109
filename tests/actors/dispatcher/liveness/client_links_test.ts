/** Clients that end, or whose links are closed or lost: when they are released. */
import type { DispatcherConfig } from "../../../../actors/dispatcher/config.ts";
import type { DispatcherProtocol } from "../../../../actors/dispatcher/protocol.ts";
import type { RequestOf } from "../../../../actors/runtime/protocol.ts";
import type { LeatError } from "../../../../core/error.ts";
import { definedFields } from "../../../../core/tree.ts";
import { assertEquals } from "../../../assert.ts";
import { settle, TestCluster } from "../lib.ts";
import { CLOSED, LOST, RemoteMember, SOON } from "./remote_member.ts";

class Trainer extends RemoteMember {
  #clientId = -1;
  readonly #request: RequestOf<DispatcherProtocol, "openIteration">;

  static async start(config: DispatcherConfig = {}, jobName?: string): Promise<Trainer> {
    const cluster = await TestCluster.start(config);
    const trainer = new Trainer(cluster, await cluster.dataset(), jobName);
    trainer.join();
    return trainer;
  }

  private constructor(cluster: TestCluster, datasetId: string, jobName: string | undefined) {
    super(cluster, "client");
    this.#request = cluster.openRequest(datasetId, definedFields({ jobName }));
  }

  async open(): Promise<void> {
    const { dispatcher } = this.cluster;
    const answer = await this.context.ask(dispatcher, "openIteration", this.#request, SOON);
    this.#clientId = answer.clientId;
  }

  async heartbeat() {
    const { dispatcher } = this.cluster;
    const request = { clientId: this.#clientId };
    return await this.context.ask(dispatcher, "clientHeartbeat", request, SOON);
  }

  /** Whether the client's job is there so long after, in ms, for which it says nothing. */
  async isThereAfter(ms: number): Promise<boolean> {
    await this.cluster.world.advance(ms);
    return (await this.cluster.ask("describe", null)).jobs.length > 0;
  }
}

Deno.test("a client whose actor has ended is released at once, though it has not said good-bye", async () => {
  await using trainer = await Trainer.start();
  await trainer.open();
  await trainer.heartbeat();
  assertEquals(await trainer.isThereAfter(0), true);
  await trainer.end();
  await settle();
  assertEquals(await trainer.isThereAfter(0), false);
});

Deno.test("a client that ends before its request to join is handled leaves nothing behind", async () => {
  await using trainer = await Trainer.start();
  const opened = trainer.open().catch(({ code }: LeatError) => code);
  await trainer.end();
  assertEquals(await opened, "cancelled");
  await settle();
  assertEquals(await trainer.isThereAfter(0), false);
});

Deno.test("a client whose link was closed at its end is released after a grace", async () => {
  await using trainer = await Trainer.start();
  await trainer.open();
  assertEquals((await trainer.heartbeat()).timeoutMs, 10_000);
  await trainer.part(CLOSED);
  assertEquals(await trainer.isThereAfter(9_000), true);
  assertEquals(await trainer.isThereAfter(5_000), false);
});

Deno.test("a client that comes back within the grace keeps everything, as often as its link is closed", async () => {
  await using trainer = await Trainer.start();
  await trainer.open();
  for (let times = 0; times < 3; times++) {
    await trainer.part(CLOSED);
    assertEquals(await trainer.isThereAfter(9_000), true);
    trainer.join();
    await trainer.heartbeat();
    assertEquals(await trainer.isThereAfter(60_000), true);
    await trainer.heartbeat();
  }
});

Deno.test("a client whose link was lost is released when it has been silent for long", async () => {
  await using trainer = await Trainer.start();
  await trainer.open();
  await trainer.part(LOST);
  assertEquals(await trainer.isThereAfter(115_000), true);
  assertEquals(await trainer.isThereAfter(10_000), false);
});

Deno.test("a client whose node has come back without a word keeps what silence leaves it, not the grace", async () => {
  await using trainer = await Trainer.start();
  await trainer.open();
  await trainer.part(CLOSED);
  assertEquals(await trainer.isThereAfter(5_000), true);
  trainer.join();
  await settle();
  await trainer.part(LOST);
  assertEquals(await trainer.isThereAfter(60_000), true);
  assertEquals(await trainer.isThereAfter(65_000), false);
});

Deno.test("a client that ended while its link was closed is released when its node comes back", async () => {
  await using trainer = await Trainer.start();
  await trainer.open();
  await trainer.part(CLOSED);
  await trainer.end();
  assertEquals(await trainer.isThereAfter(5_000), true);
  trainer.join();
  await settle();
  assertEquals(await trainer.isThereAfter(0), false);
});

Deno.test("time in which the dispatcher stood still is none of a client's grace", async () => {
  await using trainer = await Trainer.start({ clientGraceMs: 1_000 });
  await trainer.open();
  await trainer.part(CLOSED);
  trainer.cluster.world.stall(5_000);
  assertEquals(await trainer.isThereAfter(500), true);
  assertEquals(await trainer.isThereAfter(2_000), false);
});

Deno.test("openIteration says that an iteration is continued if all its clients have left or closed their links", async () => {
  const jobName = "j";
  await using trainer = await Trainer.start({}, jobName);
  const { cluster } = trainer;
  const datasetId = await cluster.dataset();
  const open = async () => {
    const { clientId, isContinued } = await cluster.open(datasetId, { jobName });
    await cluster.ask("releaseClient", { clientId });
    return isContinued;
  };
  await trainer.open();
  assertEquals(await open(), undefined, "beside a client that reads");
  await trainer.part(CLOSED);
  assertEquals(await open(), true, "within the grace of a client whose process has ended");
  await cluster.world.advance(15_000);
  assertEquals(await open(), true, "after the release of all clients");
  const next = await cluster.open(datasetId, { jobName, repetition: 1 });
  assertEquals(next.isContinued, undefined, "as the first client of an iteration");
});
