/** Which nodes a node dials: never to answer a request, and only those that it may. */
import {
  type Connector,
  type Link,
  type NodeId,
  unknownNode,
} from "../../../actors/runtime/link.ts";
import { nodeActorOf, OWNER_LOST_MS } from "../../../actors/runtime/node/node_actor.ts";
import { inlinePair } from "../../../transport/inline.ts";
import { assertEquals } from "../../assert.ts";
import { join, type Probe, probe, rejection, SOON, spawnProbe, test, TestNode } from "./nodes.ts";

/** Notes which nodes are dialled, and connects to none. */
class Dialled implements Connector {
  readonly nodes: string[] = [];

  connect(node: string, _local: NodeId): Promise<Link> {
    this.nodes.push(node);
    return Promise.reject(unknownNode(`There is no ${node}`));
  }
}

Deno.test("a node never dials to answer: an answer uses the link of its request or is lost", async () => {
  const connector = new Dialled();
  await using node = new TestNode("ws://listener", { connector });
  await using stranger = new TestNode("ws://victim");
  const target = node.system.spawn<Probe>({ name: "probe", create: probe });
  const ids = [
    node.system.world,
    node.system.id,
    stranger.system.world,
    stranger.system.id,
  ] as const;
  const [there, here] = inlinePair(...ids);
  node.system.attach(there);
  stranger.system.attach(here);
  const asked = rejection(stranger.system.ask(target, "wait", null, SOON), "unavailable");
  await node.happened("deliver");
  here.close();
  await asked;
  await node.happened("link_down");
  await node.system.ask(target, "release", null, SOON);
  await node.happened("drop");
  assertEquals(node.drops, ["unreachable"]);
  assertEquals(connector.nodes, []);
});

Deno.test("a node with mayDial dials only permitted nodes", async () => {
  const connector = new Dialled();
  const mayDial = (node: string) => node === "ws://known";
  await using node = new TestNode("ws://listener", { connector, mayDial });
  for (const name of ["ws://known", "ws://victim"]) {
    const ref = { node: name, path: "/probe" };
    await rejection(node.system.ask<Probe, "echo">(ref, "echo", 1, SOON), "not_found");
    node.system.tell<Probe, "note">(ref, "note", 1);
  }
  assertEquals([...new Set(connector.nodes)], ["ws://known"]);
});

for (
  const dialling of ["without a connector", "that may not dial it", "that knows no address of it"]
) {
  test(`a node ${dialling} stops what it runs for an owner whose link is lost`, async () => {
    await using owner = new TestNode("owner");
    const connector = new Dialled();
    await using node = new TestNode("node", {
      kinds: { probe: () => ({ create: probe }) },
      ...(dialling === "without a connector" ? {} : { connector }),
      ...(dialling === "that may not dial it" ? { mayDial: () => false } : {}),
    });
    const [toNode] = join(owner, node);
    const request = { kind: "probe", name: "probe", config: {}, owner: spawnProbe(owner) };
    await owner.system.ask(nodeActorOf("node"), "spawn", request, SOON);
    const isThere = () => node.system.actors().some(({ ref }) => ref.path === "/probe");
    toNode.close();
    await later(node, OWNER_LOST_MS / 2);
    assertEquals(isThere(), true);
    await later(node, OWNER_LOST_MS);
    assertEquals(isThere(), false);
  });
}

/** Resolves after that much time of the node. */
function later(node: TestNode, ms: number): Promise<void> {
  return new Promise((resolve) => node.system.world.timer(ms, resolve));
}
