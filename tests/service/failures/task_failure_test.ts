/** Actors that die on a live worker. */
import { Dataset, LocalCluster, type Tensor } from "../../../mod.ts";
import { nodeActorOf } from "../../../actors/runtime/node/node_actor.ts";
import { assertEquals } from "../../assert.ts";

Deno.test("a cache that dies is replaced, and trainers read on", async () => {
  await using cluster = await LocalCluster.start({
    workers: 1,
    carrier: "inline",
    placement: { cache: "inline" },
    runners: "inline",
    heartbeatMs: 50,
    clientRefreshMs: 20,
    logLevel: "off",
  });
  const dataset = Dataset.range(100).repeat().batch(4).distribute({
    service: cluster,
    jobName: "shared",
    sharing: { trainerId: "t" },
    maxOutstandingRequests: 1,
  });
  await using iterator = dataset.iterator();
  await iterator.next();
  const { ref } = (await cluster.actors()).find(({ kind }) => kind === "cache")!;
  await cluster.fleet.home.ask(nodeActorOf(ref.node), "stop", { name: ref.path.slice(1) }, {
    timeoutMs: 60_000,
  });
  for (let i = 0; i < 20; i++) {
    const { value } = await iterator.next();
    assertEquals((value as Tensor).shape, [4]);
  }
  const caches = (await cluster.actors()).filter(({ kind }) => kind === "cache");
  assertEquals(caches.length, 1);
  assertEquals(caches[0]!.ref.incarnation === ref.incarnation, false);
});
