/** Asks whose link is lost or whose system stops. */
import { SAME_PROCESS } from "../../../actors/runtime/identity.ts";
import type { Connector, Link, NodeId } from "../../../actors/runtime/link.ts";
import { ActorSystem } from "../../../actors/runtime/system.ts";
import { LeatError, type LeatErrorCode } from "../../../core/error.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { portLink } from "../../../transport/web_worker.ts";
import {
  assertEquals,
  assertNotEquals,
  assertRejects,
  assertStringIncludes,
} from "../../assert.ts";
import { join, rejection, settle, SOON, spawnProbe, test, TestNode, TestPair } from "./nodes.ts";

test("asks in flight are rejected when the link is lost; patient ones go over the next", async () => {
  await using pair = new TestPair();
  const ref = spawnProbe(pair.b);
  const plain = pair.a.system.ask(ref, "wait", null, SOON);
  const patient = pair.a.system.ask(ref, "wait", null, { ...SOON, attemptMs: 5_000 });
  await pair.b.happened("deliver", 2);
  pair.links[1].close(new LeatError("unavailable", "cut for the test"));
  const error = await rejection(plain, "unavailable");
  assertStringIncludes(error.message, "cut for the test");
  pair.join();
  while (pair.a.of("send").length < 3) await settle(1);
  await settle();
  assertEquals(await pair.a.system.ask(ref, "release", null, SOON), 2);
  assertEquals(await patient, "released");
});

test("an ask is repeated over a new link until the receiver was unavailable too many times", async () => {
  await using pair = new TestPair();
  const ref = spawnProbe(pair.b);
  const limits = { ...SOON, attemptMs: 5_000, unavailableMax: 2 };
  const asked = pair.a.system.ask(ref, "wait", null, limits);
  await pair.b.happened("deliver");
  pair.links[1].close(new LeatError("unavailable", "cut for the test"));
  const error = await rejection(asked, "unavailable");
  assertStringIncludes(error.message, "no link");
  assertEquals(pair.a.of("send").length, 2);
});

test("only refusals of an unavailable receiver count as such, not those of a full one", async () => {
  await using pair = new TestPair();
  const refusals: LeatErrorCode[] = ["resource_exhausted", "resource_exhausted", "unavailable"];
  const ref = pair.b.system.spawn<{ take(request: null): string }>({
    name: "full",
    create: () => ({
      handlers: {
        take() {
          const code = refusals.shift();
          if (code !== undefined) throw new LeatError(code, "Not now");
          return "taken";
        },
      },
    }),
  });
  const limits = { ...SOON, attemptMs: 5_000, unavailableMax: 2 };
  assertEquals(await pair.a.system.ask(ref, "take", null, limits), "taken");
});

test("asks are rejected when one of two links is lost, and watches live on", async () => {
  await using pair = new TestPair();
  const ref = spawnProbe(pair.b);
  pair.join();
  const downs: LeatError[] = [];
  pair.a.system.watch(ref, (error) => downs.push(error));
  const asked = pair.a.system.ask(ref, "wait", null, SOON);
  await pair.b.happened("deliver");
  pair.links[0].close();
  await rejection(asked, "unavailable");
  assertEquals(pair.a.of("link_down"), []);
  assertEquals(downs, []);
  await pair.b.system.stopActor("probe");
  await settle();
  assertEquals(downs.length, 1);
});

/** A link that seems open, and whose other end is gone: what is sent over it is lost. */
function deadLink(remote: NodeId): Link {
  return {
    remote,
    identity: SAME_PROCESS,
    closed: new Promise(() => {}),
    bufferedBytes: 0,
    start: () => {},
    send: () => true,
    ready: () => Promise.resolve(),
    close: () => {},
  };
}

test("a node that has lost a link at its end alone is answered over the one that it dials next", async () => {
  const [a, b] = [new TestNode("a"), new TestNode("b")];
  await using _a = a;
  await using _b = b;
  const ref = spawnProbe(b);
  b.system.attach(deadLink(a.system.id));
  const asked = b.system.ask(spawnProbe(a), "echo", 1, { ...SOON, attemptMs: 5_000 });
  const downs: LeatError[] = [];
  b.system.watch({ node: "a", path: "/probe" }, (error) => downs.push(error));
  await settle();
  join(a, b);
  assertEquals(await a.system.ask(ref, "echo", 2, SOON), { value: 2, calls: 1 });
  assertEquals(await asked, { value: 1, calls: 1 });
  await a.system.stopActor("probe");
  await settle();
  assertEquals(downs.length, 1);
});

test("nodes that dial each other at once send over the links they dialled, and later over new ones", async () => {
  const b = new TestNode("b");
  const dialled = () => deadLink(b.system.id);
  const a = new TestNode("a", { connector: { connect: () => Promise.resolve(dialled()) } });
  await using _a = a;
  await using _b = b;
  const ref = spawnProbe(b);
  const ask = (timeoutMs: number) => a.system.ask(ref, "echo", 1, { timeoutMs });
  const first = rejection(ask(11_000), "deadline_exceeded");
  await settle();
  join(a, b);
  await rejection(ask(5_000), "deadline_exceeded");
  await first;
  join(a, b);
  assertEquals(await ask(1_000), { value: 1, calls: 1 });
});

test("a dial that fails late does not refuse messages that wait for a later dial", async () => {
  const b = new TestNode("b");
  const dials: PromiseWithResolvers<Link>[] = [];
  const connect = () => {
    const dial = Promise.withResolvers<Link>();
    dials.push(dial);
    return dial.promise;
  };
  const a = new TestNode("a", { connector: { connect } });
  await using _a = a;
  await using _b = b;
  const ref = spawnProbe(b);
  const first = a.system.ask(ref, "echo", 1, SOON);
  const [, toA] = join(a, b);
  assertEquals(await first, { value: 1, calls: 1 });
  toA.close();
  await a.happened("link_down");
  const second = a.system.ask(ref, "echo", 2, SOON);
  dials[0]!.reject(new LeatError("unavailable", "The first dial failed"));
  await settle();
  join(a, b);
  assertEquals(await second, { value: 2, calls: 2 });
  dials[1]!.reject(new LeatError("unavailable", "Connected by the other node"));
});

test("what waits for a link goes before what the link's first messages cause", async () => {
  const b = new TestNode("b");
  const far = spawnProbe(b);
  const connector: Connector = {
    async connect(_node, local) {
      const { port1, port2 } = new MessageChannel();
      const toA = portLink(port2, local);
      toA.send({
        kind: "tell",
        source: { node: "b", path: "/other", incarnation: "0" },
        target: { node: "a", path: "/sender" },
        number: 1,
        method: "send",
        body: "second",
      });
      b.system.attach(toA);
      const toB = portLink(port1, b.system.id);
      await settle();
      return toB;
    },
  };
  const a = new TestNode("a", { connector });
  interface Sender {
    send(value: unknown): void;
  }
  const sender = a.system.spawn<Sender>({
    name: "sender",
    create: (context) => ({
      handlers: { send: (value) => context.tell(far, "note", value) },
    }),
  });
  a.system.tell(sender, "send", "first");
  await a.happened("link_up");
  await settle();
  assertEquals(await a.system.ask(far, "notes", null, SOON), ["first", "second"]);
  await a.system.stop();
  await b.system.stop();
});

test("two nodes of one world do not share an incarnation", async () => {
  const world = new DenoWorld({ logLevel: "off", seed: 1n });
  await using first = new ActorSystem({ node: "a", world });
  await using second = new ActorSystem({ node: "a", world });
  assertNotEquals(first.id.incarnation, second.id.incarnation);
});

test("an ask made after its system has stopped is cancelled", async () => {
  const node = new TestNode("a");
  const ref = spawnProbe(node);
  await node.system.stop();
  await rejection(node.system.ask(ref, "notes", null, SOON), "cancelled");
  await assertRejects(async () => {
    await Promise.resolve();
    spawnProbe(node);
  }, LeatError);
});

test("asks open when a system stops are cancelled, and nothing is left pending", async () => {
  const pair = new TestPair();
  const ref = spawnProbe(pair.b);
  const open = pair.a.system.ask(ref, "wait", null, { timeoutMs: 3_600_000, attemptMs: 1_000 });
  const ended = rejection(open, "cancelled");
  await pair.b.happened("deliver");
  await pair.a.system.stop();
  await ended;
  await pair.b.system.stop();
});
