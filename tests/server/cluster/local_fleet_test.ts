/** The nodes of a local cluster: what closing leaves of nodes that are starting. */
import { LocalFleet } from "../../../server/cluster/local_fleet.ts";
import { LocalCluster } from "../../../mod.ts";
import { rejection } from "../../actors/runtime/nodes.ts";
import { assert, assertEquals, assertInstanceOf } from "../../assert.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { until } from "../../lib/until.ts";

/** Listens on the port of a node that has ended. Another test may have it for a moment. */
async function takePortOf(address: string): Promise<void> {
  await until(() => {
    try {
      Deno.listen({ hostname: "127.0.0.1", port: Number(new URL(address).port) }).close();
      return true;
    } catch (error) {
      assertInstanceOf(error, Deno.errors.AddrInUse);
      return false;
    }
  });
}

Deno.test("LocalFleet.close stops nodes that are starting, and later ones are refused", async () => {
  const fleet = new LocalFleet("fleet-test", "off");
  const starting = (["inline", "websocket"] as const).map((carrier) =>
    fleet.start(carrier, carrier, { role: "proxy" })
  );
  await fleet.close();
  const [inline, webSocket] = await Promise.all(starting);
  assertEquals([inline!, webSocket!].map(({ id }) => fleet.carrierOf(id.node)), [
    undefined,
    undefined,
  ]);
  await takePortOf(webSocket!.id.node);
  await rejection(fleet.start("inline", "late", { role: "proxy" }), "cancelled");
});

Deno.test("LocalFleet.close waits for nodes that are ending", async () => {
  const fleet = new LocalFleet("fleet-test", "off");
  const node = await fleet.start("websocket", "ending", { role: "proxy" });
  let ended = false;
  const ending = node.kill().then(() => ended = true);
  await fleet.close();
  assert(ended);
  await ending;
});

Deno.test("LocalCluster.close stops a dispatcher that is restarting, and a worker that is starting", async () => {
  await using folder = await TempFolder.make();
  const options = { workers: 0, journal: folder.path, carrier: "websocket" } as const;
  const cluster = await LocalCluster.start(options);
  const { address } = cluster;
  await cluster.stopDispatcher();
  const restarting = cluster.restartDispatcher();
  await cluster.close();
  await restarting;
  await takePortOf(address);
  // The journal's lock is free.
  await using again = await LocalCluster.start(options);
  // The sanitizer of resources fails the test if the worker's node still listens.
  const adding = again.addWorker().catch(() => {});
  await again.close();
  await adding;
});
