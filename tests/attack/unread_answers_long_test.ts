/**
 * A peer that asks and never acknowledges the answers. They wait for it in the memory of the node
 * that it asks, which must not grow without limit.
 *
 * @module
 */
import type { ClientProtocol } from "../../actors/client/protocol.ts";
import type { ActorContext } from "../../actors/runtime/actor.ts";
import { RequestRates } from "../../actors/dispatcher/jobs/request_rates.ts";
import { Payload } from "../../transport/payload.ts";
import { Unread } from "../../transport/web_socket/unread.ts";
import { settle, TestCluster } from "../actors/dispatcher/lib.ts";
import { LeatError } from "../../core/error.ts";
import { assert, assertEquals, assertMatch, assertThrows } from "../assert.ts";
import { Asker, CLIENT, SOURCE, TARGET } from "./asker.ts";

Deno.test("requests wait while a client does not read the answers, and go on in order when it does", () => {
  const asker = new Asker(CLIENT);
  asker.ask(1_000);
  assert(asker.answered.length < 100, `${asker.answered.length} answers of 1 MiB are unread`);
  asker.acknowledge();
  assertEquals(asker.answered, Array.from({ length: 1_000 }, (_, i) => i + 1));
  assertEquals(asker.isClosed, false);
});

Deno.test("all links of an identity together hold a bounded number of unread bytes", () => {
  const askers: Asker[] = [];
  const all = () => askers.reduce((sum, { link }) => sum + link.bufferedBytes, 0);
  const unread = new Unread(CLIENT);
  for (let i = 0; i < 100; i++) askers.push(new Asker(CLIENT, { unread }));
  for (const asker of askers) asker.ask(100);
  assert(all() < 500 * 2 ** 20, `${all()} bytes are unread`);
  // Each of them gets an answer nevertheless.
  for (const { received } of askers) assert(received.length > 0);
});

Deno.test("requests of one frame wait as those of many frames do", () => {
  const asker = new Asker(CLIENT);
  asker.askAtOnce(1_000);
  assert(asker.answered.length < 100, `${asker.answered.length} answers of 1 MiB are unread`);
  // A request that comes later waits for its turn.
  asker.ask(1);
  asker.acknowledge();
  assertEquals(asker.received, Array.from({ length: 1_001 }, (_, i) => i + 1));
});

Deno.test("large answers to requests that were all handled take no memory until their turn", () => {
  const unread = new Unread(CLIENT);
  const asker = new Asker(CLIENT, { unread, answer: null });
  asker.askAtOnce(24);
  assertEquals(asker.open.length, 24);
  const graph = new Uint8Array(31 * 2 ** 20);
  for (const number of asker.open) asker.answer(number, { graph });
  assert(unread.bytes < 128 * 2 ** 20, `${unread.bytes} bytes are unread`);
  // It gets nothing else meanwhile.
  asker.ask(1);
  assertEquals(asker.open.length, 24);
  asker.acknowledge();
  assertEquals(asker.received, Array.from({ length: 24 }, (_, i) => i + 1));
  assertEquals(asker.open.length, 25);
  assertEquals([unread.bytes, asker.link.bufferedBytes], [0, 0]);
});

Deno.test("large answers on an identity's links wait, and are sent in turn as other links read theirs or close", () => {
  const unread = new Unread(CLIENT);
  const graph = new Uint8Array(20 * 2 ** 20);
  const askers = Array.from({ length: 40 }, () => new Asker(CLIENT, { unread, answer: null }));
  for (const asker of askers) {
    asker.ask(2);
    asker.answer(1, { graph });
    // This one is small, and comes after the first all the same.
    asker.answer(2, null);
  }
  assert(unread.bytes < 600 * 2 ** 20, `${unread.bytes} bytes are unread`);
  const others = new Asker({ name: "others", role: "client" }, { answer: null });
  others.answer(1, { graph });
  others.acknowledge();
  assertEquals(others.received, [1]);
  // An asker that has got nothing large is still told what is small.
  const last = askers.at(-1)!;
  assertEquals(last.received, []);
  const note = { kind: "tell", source: { ...TARGET, path: "/other" }, target: SOURCE } as const;
  last.link.send({ ...note, number: 1, method: "note", body: null });
  assertEquals(last.received.length, 1);
  const [closed, ...reading] = askers;
  closed!.link.close(new LeatError("cancelled", "the test is over"));
  for (const asker of reading) asker.acknowledge();
  for (const asker of reading) {
    asker.acknowledge();
    assertEquals(asker.received.filter((number) => number !== undefined), [1, 2]);
  }
  assertEquals(unread.bytes, 0);
});

Deno.test("answers that would take memory while they wait are refused beyond a limit", () => {
  const asker = new Asker(CLIENT, { answer: null });
  const text = "x".repeat(2 ** 20);
  const refused = assertThrows(() => {
    for (let i = 1; i < 1_000; i++) asker.answer(i, text);
  }, LeatError);
  assertMatch(refused.message, /Answers to "team" wait until it reads earlier ones/);
  assert(asker.answered.length > 64 && asker.answered.length < 200);
  asker.acknowledge();
  assertEquals(asker.received.length, asker.answered.length - 1);
});

Deno.test("all links of an identity together begin messages up to a limit", () => {
  for (const role of ["client", "viewer", "worker"] as const) {
    const askers: Asker[] = [];
    const all = () => askers.reduce((sum, { link }) => sum + link.incompleteBytes, 0);
    for (let i = 0; i < 10; i++) {
      const asker = new Asker({ name: "team", role }, { incompleteBytesOf: all });
      askers.push(asker);
      asker.begin(300 * 2 ** 20);
    }
    // Links of workers have a limit each.
    const open = askers.filter(({ isClosed }) => !isClosed).length;
    assertEquals(open, role === "worker" ? 10 : 3);
    for (const { link } of askers) link.close(new LeatError("cancelled", "the test is over"));
  }
});

Deno.test("a client that goes on asking without reading loses its connection", () => {
  const asker = new Asker(CLIENT);
  for (let i = 0; i < 100 && !asker.isClosed; i++) asker.ask(10, "x".repeat(100_000));
  assertEquals(asker.isClosed, true);
  assertEquals(asker.link.bufferedBytes, 0);
});

Deno.test("workers and admins may leave more unread, and not without limit", () => {
  for (const role of ["worker", "admin"] as const) {
    const asker = new Asker({ name: "node", role });
    asker.ask(200);
    assertEquals(asker.answered.length, 200);
    asker.ask(1_000);
    assert(asker.answered.length < 600, `${asker.answered.length} answers of 1 MiB are unread`);
    asker.acknowledge();
    assertEquals(asker.answered, Array.from({ length: 1_200 }, (_, i) => i + 1));
    assertEquals(asker.isClosed, false);
  }
});

Deno.test("large answers of a dispatcher count as many requests of the identity that asked", () => {
  const rates = new RequestRates(100, () => 0);
  const by = { sender: CLIENT, source: SOURCE };
  for (let i = 0; i < 4; i++) {
    rates.take(by);
    rates.addAnswer(by, 2 ** 21); // as 128 requests of the 500 in a burst
  }
  assertThrows(() => rates.take(by), Error, "requests a second");
  rates.take({ ...by, sender: { name: "others", role: "client" } });
});

Deno.test("a client that reads nothing makes the dispatcher keep few hints for it", async () => {
  await using cluster = await TestCluster.start();
  const { clientId } = await cluster.open(await cluster.dataset());
  let wakes = 0;
  let asking: ActorContext | undefined;
  cluster.system.spawn<ClientProtocol>({
    name: "client",
    create: (context) => {
      asking = context;
      return {
        handlers: {
          wake: () => (wakes++, null),
          askAgain: () => ({}),
          readSource: () => ({ given: new Payload(new Uint8Array()) }),
        },
      };
    },
  });
  await settle();
  const heartbeat = () =>
    asking!.ask(cluster.dispatcher, "clientHeartbeat", { clientId }, { timeoutMs: 60_000 });
  await heartbeat();
  for (let i = 0; i < 100; i++) {
    await cluster.worker(`w${i}`).heartbeat();
    await settle();
    await cluster.world.advance(100);
  }
  assert(wakes >= 1 && wakes <= 32, `${wakes} hints without a heartbeat`);
  const before = wakes;
  await heartbeat();
  await cluster.worker("another").heartbeat();
  await settle();
  await cluster.world.advance(100);
  assertEquals(wakes, before + 1, "one that is there again is told again");
});
