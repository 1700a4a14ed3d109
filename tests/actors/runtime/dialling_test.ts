/** Which nodes a node dials: never to answer a request, and only those that it may. */
import {
  type Connector,
  type Link,
  type NodeId,
  unknownNode,
} from "../../../actors/runtime/link.ts";
import { inlinePair } from "../../../transport/inline.ts";
import { assertEquals } from "../../assert.ts";
import { type Probe, probe, rejection, SOON, TestNode } from "./nodes.ts";

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
