/** Watching actors, and the actor that every node has. */
import { LeatError } from "../../../core/error.ts";
import type { ActorContext, WatchEnd } from "../../../actors/runtime/actor.ts";
import { closedThere } from "../../../actors/runtime/link.ts";
import { nodeActorOf } from "../../../actors/runtime/node/node_actor.ts";
import type { Delivery } from "../../../actors/runtime/protocol.ts";
import type { FencedRef, Ref } from "../../../actors/runtime/ref.ts";
import { assert, assertEquals, assertStringIncludes } from "../../assert.ts";
import {
  type Probe,
  probe,
  rejection,
  settle,
  SOON,
  spawnProbe,
  type TestNode,
  TestPair,
} from "./nodes.ts";

/** The first `down` of a watch. */
function downOf(node: TestNode, target: Ref): { down: Promise<LeatError>; unwatch: () => void } {
  const { promise, resolve } = Promise.withResolvers<LeatError>();
  return { down: promise, unwatch: node.system.watch(target, resolve) };
}

Deno.test("watch reports a death and a stop, locally and over a link", async () => {
  await using pair = new TestPair();
  for (const node of [pair.a, pair.b]) {
    const victim = spawnProbe(node, { name: "victim", restart: "temporary" });
    const crashed = downOf(pair.a, victim);
    pair.a.system.tell(victim, "crash", "a bug");
    const error = await crashed.down;
    assertEquals(error.code, "internal");
    assertStringIncludes(error.message, "a bug");

    const quitter = spawnProbe(node, { name: "quitter" });
    const stopped = downOf(pair.a, quitter);
    await pair.a.system.ask(quitter, "notes", null, SOON);
    await node.system.stopActor("quitter");
    assertEquals((await stopped.down).code, "unavailable");
  }
});

Deno.test("watch of a missing actor is down at once", async () => {
  await using pair = new TestPair();
  for (const node of ["a", "b"]) {
    const { down } = downOf(pair.a, { node, path: "/nobody" });
    assertEquals((await down).code, "not_found");
  }
  const { down } = downOf(pair.a, { node: "nowhere", path: "/probe" });
  assertEquals((await down).code, "unavailable");
});

Deno.test("watch of an earlier incarnation is down at once", async () => {
  await using pair = new TestPair();
  const first = spawnProbe(pair.b);
  await pair.b.system.stopActor("probe");
  spawnProbe(pair.b);
  const { down } = downOf(pair.a, first);
  assertEquals((await down).code, "failed_precondition");
});

Deno.test("watch reports a lost link once", async () => {
  await using pair = new TestPair();
  const ref = spawnProbe(pair.b);
  const downs: LeatError[] = [];
  pair.a.system.watch(ref, (error) => downs.push(error));
  await pair.a.system.ask(ref, "notes", null, SOON);
  pair.links[1].close(new LeatError("unavailable", "cut for the test"));
  await pair.a.happened("link_down");
  assertEquals(downs.map(({ code }) => code), ["unavailable"]);
  assertStringIncludes(downs[0]!.message, "cut for the test");
  pair.join();
  await pair.b.system.stopActor("probe");
  await settle();
  assertEquals(downs.length, 1);
  assert(!pair.b.of("send").some(({ envelope }) => envelope.kind === "down"), "it has been told");
});

Deno.test("watch distinguishes an end, a closed link and a lost link", async () => {
  const endOf = (node: TestNode, target: Ref) =>
    new Promise<WatchEnd>((resolve) => node.system.watch(target, (_error, end) => resolve(end)));
  const broken = new LeatError("unavailable", "broken for the test");
  await using pair = new TestPair();
  const [a, b] = [pair.a, pair.b];
  assertEquals(await endOf(a, { node: "b", path: "/nobody" }), "ended");
  assertEquals(await endOf(a, { node: "nowhere", path: "/probe" }), "lost");
  const ref = spawnProbe(b);
  let over = endOf(a, ref);
  await b.system.stopActor("probe");
  assertEquals(await over, "ended");
  for (const [reason, end] of [[broken, "lost"], [closedThere(broken), "closed"]] as const) {
    over = endOf(a, spawnProbe(b));
    await settle();
    pair.links[1].close(reason);
    assertEquals(await over, end);
    await b.system.stopActor("probe");
    pair.links.splice(0, 2, ...pair.join());
  }
});

Deno.test("watch over two links that close together says why they closed", async () => {
  await using pair = new TestPair();
  const ref = spawnProbe(pair.b);
  const others = pair.join();
  const ends: WatchEnd[] = [];
  pair.a.system.watch(ref, (_error, end) => ends.push(end));
  await settle();
  const reason = closedThere(new LeatError("unavailable", "its process has ended"));
  pair.links[1].close(reason);
  others[1].close(reason);
  // Before the node knows that the links are closed.
  pair.a.system.watch(ref, (_error, end) => ends.push(end));
  await pair.a.happened("link_down");
  assertEquals(ends, ["closed", "closed"]);
});

Deno.test("a caller outside actors can be watched until the node ends", async () => {
  await using pair = new TestPair();
  const { system } = pair.b;
  const asker = Promise.withResolvers<FencedRef>();
  pair.a.system.spawn<{ look(): null }>({
    name: "looker",
    create: () => ({
      handlers: {
        look: (_request: unknown, { source }: Delivery) => {
          asker.resolve(source);
          return null;
        },
      } as never,
    }),
  });
  const looker = { node: "a", path: "/looker" } as Ref<{ look(request: null): null }>;
  await system.ask(looker, "look", null, SOON);
  const ends: WatchEnd[] = [];
  pair.a.system.watch(await asker.promise, (_error, end) => ends.push(end));
  await settle();
  assertEquals(ends, []);
  await system.stop();
  await settle();
  assertEquals(ends, ["ended"]);
});

Deno.test("unwatch ends reports", async () => {
  await using pair = new TestPair();
  const ref = spawnProbe(pair.b);
  let downs = 0;
  const unwatch = pair.a.system.watch(ref, () => downs++);
  await pair.a.system.ask(ref, "notes", null, SOON);
  unwatch();
  await settle();
  await pair.b.system.stopActor("probe");
  await settle();
  assertEquals(downs, 0);
  assert(!pair.b.of("send").some(({ envelope }) => envelope.kind === "down"));
});

Deno.test("watch of an actor that has ended is not kept at the target's node", async () => {
  await using pair = new TestPair();
  const ref = spawnProbe(pair.b);
  pair.a.system.spawn({
    name: "watcher",
    create: (context) => {
      context.watch(ref, () => {});
      return { handlers: {} };
    },
  });
  await settle();
  await pair.a.system.stopActor("watcher");
  await settle();
  await pair.b.system.stopActor("probe");
  assert(!pair.b.of("send").some(({ envelope }) => envelope.kind === "down"));
});

Deno.test("/node starts, lists and stops actors of the kinds it offers", async () => {
  await using pair = new TestPair({
    b: { kinds: { probe: () => ({ create: probe, mailboxMax: 10 }) } },
  });
  const node = nodeActorOf("b");
  const ask = pair.a.system.ask.bind(pair.a.system);
  const ref = await ask(node, "spawn", { kind: "probe", name: "p1", config: {} }, SOON);
  assertEquals((await ask(ref as Ref<Probe>, "echo", 1, SOON)).value, 1);
  const listed = await ask(node, "list", null, SOON);
  assertEquals(
    listed.find(({ ref }) => ref.path === "/p1"),
    { ref, kind: "probe", state: "running", mailboxLength: 0 },
  );
  const taken = { kind: "probe", name: "p1", config: {} };
  await rejection(ask(node, "spawn", taken, SOON), "already_exists");
  const unknown = { kind: "toString", name: "p2", config: {} };
  const error = await rejection(ask(node, "spawn", unknown, SOON), "not_found");
  assertStringIncludes(error.message, "it starts: probe");
  await ask(node, "stop", { name: "p1" }, SOON);
  await rejection(ask(ref as Ref<Probe>, "echo", 1, SOON), "not_found");
  spawnProbe(pair.b);
  await ask(node, "stop", { name: "probe" }, SOON);
  assert(pair.b.system.actors().some(({ ref }) => ref.path === "/probe"), "not its to stop");
});

Deno.test("/node refuses a malformed request or invalid config and continues", async () => {
  const probeOf = ({ size }: { size: number }) => ({ create: probe, mailboxMax: size });
  await using pair = new TestPair({ b: { kinds: { probe: probeOf } } });
  const node = nodeActorOf("b");
  const ask = pair.a.system.ask.bind(pair.a.system) as (...of: unknown[]) => Promise<unknown>;
  const requests = [
    ["ended", {}, "lives is missing"],
    ["ended", { lives: [1] }, "lives.0 must be an object"],
    ["spawn", null, "the request must be an object"],
    ["stop", { name: 7 }, "name must be a text"],
    ["spawn", { kind: "probe", name: "p", config: null }, 'cannot start a "probe"'],
  ] as const;
  for (const [method, request, message] of requests) {
    const error = await rejection(ask(node, method, request, SOON), "invalid_argument");
    assertStringIncludes(error.message, message);
  }
  assertEquals(pair.b.of("restart"), []);
});

Deno.test("whenLinked calls once when there is a link to a node", async () => {
  await using pair = new TestPair();
  const heard: string[] = [];
  const spawn = (name: string) => {
    const { promise, resolve } = Promise.withResolvers<ActorContext>();
    pair.a.system.spawn({
      name,
      create: (context) => {
        resolve(context);
        return { handlers: {} };
      },
    });
    return promise;
  };
  const [stays, leaves] = [await spawn("stays"), await spawn("leaves")];
  stays.whenLinked("b", () => heard.push("at once"));
  assertEquals(heard, []);
  await settle();
  assertEquals(heard, ["at once"]);

  pair.links[0].close(new LeatError("unavailable", "a test"));
  await pair.a.happened("link_down");
  stays.whenLinked("b", () => heard.push("later"));
  stays.whenLinked("c", () => heard.push("another node"));
  stays.whenLinked("b", () => heard.push("not wanted any more"))();
  leaves.whenLinked("b", () => heard.push("ended"));
  await pair.a.system.stopActor("leaves");
  await settle();
  assertEquals(heard, ["at once"]);
  pair.join();
  assertEquals(heard, ["at once", "later"]);
  pair.join();
  await settle();
  assertEquals(heard, ["at once", "later"]);
});
