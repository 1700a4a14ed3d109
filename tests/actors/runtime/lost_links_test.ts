/** Asks whose link is lost or whose system stops. */
import type { Connector } from "../../../actors/runtime/link.ts";
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
import { rejection, settle, SOON, spawnProbe, test, TestNode, TestPair } from "./nodes.ts";

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
