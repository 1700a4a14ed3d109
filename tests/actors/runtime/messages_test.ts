/** The runtime's guarantees for messages and asks, between two nodes joined inline. */
import { KEPT_BYTES_MAX } from "../../../actors/runtime/asking/answers.ts";
import { ANSWER_NOT_KEPT } from "../../../actors/runtime/asking/asks.ts";
import type { Envelope } from "../../../actors/runtime/envelope.ts";
import type { Link } from "../../../actors/runtime/link.ts";
import { ActorNode } from "../../../actors/runtime/node/node.ts";
import { type FencedRef, nameOf, type Ref } from "../../../actors/runtime/ref.ts";
import { LeatError } from "../../../core/error.ts";
import { inlinePair } from "../../../transport/inline.ts";
import { Payload } from "../../../transport/payload.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { assert, assertEquals, assertNotEquals, assertStringIncludes } from "../../assert.ts";
import { LossyLink, lossyPair } from "./lossy_link.ts";
import {
  type Probe,
  probe,
  rejection,
  settle,
  SOON,
  spawnProbe,
  test,
  TestNode,
  TestPair,
} from "./nodes.ts";

test("tell keeps the order of one sender to one receiver, locally and over a link", async () => {
  await using pair = new TestPair();
  const local = spawnProbe(pair.a);
  const remote = spawnProbe(pair.b);
  const expected = Array.from({ length: 1000 }, (_, i) => i);
  for (const ref of [local, remote]) {
    for (const i of expected) pair.a.system.tell(ref, "note", i);
    assertEquals(await pair.a.system.ask(ref, "notes", null, SOON), expected);
  }
  assertEquals(pair.a.of("gap"), []);
  assertEquals(pair.b.drops, []);
});

test("a message is delivered in a later macrotask, after the sender's microtasks", async () => {
  await using node = new TestNode("a");
  const ref = spawnProbe(node);
  await settle();
  const order: string[] = [];
  node.system.inspect(({ type }) => type === "deliver" && order.push("delivered"));
  node.system.tell(ref, "note", 1);
  await Promise.resolve().then(() => {}).then(() => order.push("microtasks"));
  await settle();
  assertEquals(order, ["microtasks", "delivered"]);
});

test("sender and receiver never see each other's later changes to a body", async () => {
  await using pair = new TestPair();
  for (const ref of [spawnProbe(pair.a), spawnProbe(pair.b)]) {
    const body = { list: [1, 2], bytes: new Uint8Array([1, 2]), deep: { x: 1 } };
    pair.a.system.tell(ref, "note", body);
    body.list.push(3);
    body.bytes[0] = 9;
    body.deep.x = 9;
    const notes = await pair.a.system.ask(ref, "notes", null, SOON);
    assertEquals(notes, [{ list: [1, 2], bytes: new Uint8Array([1, 2]), deep: { x: 1 } }]);
    notes.push("mine");
    assertEquals((await pair.a.system.ask(ref, "notes", null, SOON)).length, 1);
  }
});

test("a payload is handed over; one that is shared or may be sent again is copied", async () => {
  await using pair = new TestPair();
  const send = async (payload: Payload, ref: FencedRef<Probe>, attemptMs?: number) => {
    const options = attemptMs === undefined ? SOON : { ...SOON, attemptMs };
    let seen: Payload | undefined;
    const watch = (node: TestNode) =>
      node.system.inspect((event) => {
        if (event.type === "deliver" && event.envelope.kind === "ask") {
          seen = event.envelope.body as Payload;
        }
      });
    const stops = [watch(pair.a), watch(pair.b)];
    await pair.a.system.ask(ref, "echo", payload, options);
    for (const end of stops) end();
    return seen!;
  };
  for (const ref of [spawnProbe(pair.a), spawnProbe(pair.b)]) {
    const moved = new Payload(new Uint8Array([1]));
    assert((await send(moved, ref)).bytes === moved.bytes);
    const shared = new Payload(new Uint8Array([2]), { shared: true });
    const copy = await send(shared, ref);
    assert(copy.bytes !== shared.bytes);
    assertEquals(copy.bytes, shared.bytes);
    const again = new Payload(new Uint8Array([3]));
    assert((await send(again, ref, 1000)).bytes !== again.bytes);
    const common = new Payload(new Uint8Array(new SharedArrayBuffer(4)));
    assert((await send(common, ref)).bytes.buffer === common.bytes.buffer);
  }
});

test("an ask without an answer ends at its deadline", async () => {
  await using pair = new TestPair();
  const ref = spawnProbe(pair.b);
  const error = await rejection(
    pair.a.system.ask(ref, "wait", null, { timeoutMs: 20 }),
    "deadline_exceeded",
  );
  assertStringIncludes(error.message, "b/probe");
  assertStringIncludes(error.message, "wait");
  // The late answer is dropped.
  await pair.a.system.ask(ref, "release", null, SOON);
  await settle();
  assert(pair.a.drops.includes("unwanted_reply"));
});

test("an ask refuses a deadline that is not a number", async () => {
  await using node = new TestNode("a");
  const ref = spawnProbe(node);
  await rejection(node.system.ask(ref, "notes", null, { timeoutMs: NaN }), "invalid_argument");
});

test("an ask whose time is over when its turn comes is dropped unhandled", async () => {
  await using node = new TestNode("a");
  const ref = spawnProbe(node);
  await node.system.ask(ref, "notes", null, SOON);
  const hurried = node.system.ask(ref, "echo", 1, { timeoutMs: 0 });
  await rejection(hurried, "deadline_exceeded");
  await settle();
  assert(node.drops.includes("expired"));
  assertEquals(await node.system.ask(ref, "echo", 2, SOON), { value: 2, calls: 1 });
});

test("an ask that is repeated is handled once and answered the same", async () => {
  let lost = 0;
  await using pair = lossyPair((envelope) => envelope.kind === "reply" && lost++ < 3);
  const ref = spawnProbe(pair.b);
  const limits = { ...SOON, attemptMs: 10 };
  assertEquals(await pair.a.system.ask(ref, "echo", "x", limits), { value: "x", calls: 1 });
  assertEquals(lost, 4);
  assertEquals(await pair.a.system.ask(ref, "echo", "y", limits), { value: "y", calls: 2 });
});

test("a repeated refusal is the same too, but an `unavailable` one is handled anew", async () => {
  let lost = 0;
  await using pair = lossyPair((envelope) => envelope.kind === "failure" && lost++ < 2);
  const ref = spawnProbe(pair.b);
  const limits = { ...SOON, attemptMs: 10 };
  const error = await rejection(pair.a.system.ask(ref, "refuse", "aborted", limits), "aborted");
  assertEquals(error.details, { why: "asked to" });
  assertEquals(pair.b.of("deliver").length, 1);
  lost = 0;
  const unavailable = pair.a.system.ask(ref, "refuse", "unavailable", {
    timeoutMs: 1_000,
    attemptMs: 10,
  });
  await rejection(unavailable, "unavailable");
  assert(pair.b.of("deliver").length > 2, "it was tried again");
});

test("a repeated answer is as it was first given, whatever became of its parts", async () => {
  let lost = 0;
  await using pair = lossyPair((envelope) => envelope.kind === "reply" && lost++ < 1);
  const state = { count: 0 };
  interface Counter {
    next(request: null): { count: number; block: Payload };
  }
  const block = new Payload(new Uint8Array([7]));
  const ref = pair.b.system.spawn<Counter>({
    name: "counter",
    create: () => ({
      handlers: {
        next() {
          state.count++;
          return { ...state, block, nested: state } as { count: number; block: Payload };
        },
      },
    }),
  });
  const asked = pair.a.system.ask(ref, "next", null, { ...SOON, attemptMs: 30 });
  await pair.b.happened("deliver");
  state.count = 100;
  const answer = await asked as unknown as { count: number; nested: { count: number } };
  assertEquals([answer.count, answer.nested.count], [1, 1]);
});

test("an idempotent ask whose answer was lost and not kept is handled again, and another is refused", async () => {
  for (const isIdempotent of [true, false]) {
    let lost = 0;
    await using a = new TestNode("a");
    await using b = new TestNode("b");
    const [toB, toA] = inlinePair(a.system.world, a.system.id, b.system.world, b.system.id);
    a.system.attach(new LossyLink(toB, ({ kind }) => kind === "reply" && lost++ < 1));
    b.system.attach(Object.assign(toA, { identity: { name: "team", role: "client" } }));
    let calls = 0;
    const ref = b.system.spawn<{ large(request: null): Payload }>({
      name: "large",
      create: () => ({
        access: { large: ["client"] },
        handlers: { large: () => (calls++, new Payload(new Uint8Array(KEPT_BYTES_MAX))) },
      }),
    });
    const asked = a.system.ask(ref, "large", null, {
      ...{ ...SOON, attemptMs: 20 },
      ...(isIdempotent ? { isIdempotent } : {}),
    });
    if (isIdempotent) assertEquals((await asked).byteLength, KEPT_BYTES_MAX);
    else assertEquals((await rejection(asked, "aborted")).details, { reason: ANSWER_NOT_KEPT });
    assertEquals(calls, isIdempotent ? 2 : 1);
  }
});

test("an idempotent ask whose answer is never kept is handled again after longer and longer pauses", async () => {
  await using pair = new TestPair();
  let calls = 0;
  const ref = pair.b.system.spawn<{ forgotten(request: null): null }>({
    name: "forgetful",
    create: () => ({
      handlers: {
        forgotten() {
          calls++;
          const details = { reason: ANSWER_NOT_KEPT };
          throw new LeatError("aborted", "the answer was not kept", { details });
        },
      },
    }),
  });
  const options = { timeoutMs: 10_000, attemptMs: 1_000, isIdempotent: true } as const;
  await rejection(pair.a.system.ask(ref, "forgotten", null, options), "deadline_exceeded");
  assert(calls > 5 && calls < 20, `handled ${calls} times`);
});

test("an ask that may be repeated says what its body was when it was made", async () => {
  let lost = 0;
  await using pair = new TestPair();
  pair.links[0].close();
  await settle();
  const [a, b] = [pair.a.system, pair.b.system];
  const [toB, toA] = inlinePair(a.world, a.id, b.world, b.id);
  a.attach(toB);
  b.attach(new LossyLink(toA, (envelope) => envelope.kind === "ask" && lost++ < 1));
  const ref = spawnProbe(pair.b);
  const body = { n: 1 };
  const asked = a.ask(ref, "echo", body, { ...SOON, attemptMs: 20 });
  body.n = 2;
  assertEquals((await asked).value, { n: 1 });
  assertEquals(pair.b.of("gap").map(({ missing }) => missing), [], "the first loss is not seen");
});

test("a lost message is seen as a gap, and what comes late is dropped", async () => {
  let first: Envelope | undefined;
  const a = new TestNode("a");
  const b = new TestNode("b");
  const [toB, toA] = inlinePair(a.system.world, a.system.id, b.system.world, b.system.id);
  a.system.attach(toB);
  let deliver: (envelope: Envelope) => void = () => {};
  const link: Link = {
    remote: toA.remote,
    identity: toA.identity,
    closed: toA.closed,
    bufferedBytes: 0,
    start(receive) {
      deliver = receive;
      toA.start((envelope) => {
        if (envelope.kind === "tell" && envelope.body === "late") first = envelope;
        else receive(envelope);
      });
    },
    send: (envelope) => toA.send(envelope),
    ready: () => toA.ready(),
    close: (reason) => toA.close(reason),
  };
  b.system.attach(link);
  const ref = spawnProbe(b);
  a.system.tell(ref, "note", "first");
  a.system.tell(ref, "note", "late");
  a.system.tell(ref, "note", "third");
  await a.system.ask(ref, "notes", null, SOON);
  assertEquals(b.of("gap").map(({ missing }) => missing), [1]);
  deliver(first!);
  deliver(first!);
  await settle();
  assertEquals(b.drops, ["not_newer", "not_newer"]);
  assertEquals(await a.system.ask(ref, "notes", null, SOON), ["first", "third"]);
  await a.system.stop();
  await b.system.stop();
});

test("a mailbox that is full refuses asks and drops tells", async () => {
  await using node = new TestNode("a");
  let release = () => {};
  const gate = new Promise<void>((resolve) => release = resolve);
  const ref = node.system.spawn<Probe>({
    name: "probe",
    mailboxMax: 3,
    create: (context) => ({ ...probe(context), start: () => gate }),
  });
  for (let i = 0; i < 5; i++) node.system.tell(ref, "note", i);
  const refused = node.system.ask(ref, "notes", null, SOON);
  const error = await rejection(refused, "resource_exhausted");
  assertStringIncludes(error.message, "3 messages");
  const patient = node.system.ask(ref, "notes", null, { ...SOON, attemptMs: 1000 });
  await settle();
  release();
  assertEquals(await patient, [0, 1, 2]);
  assertEquals(node.drops.filter((reason) => reason === "mailbox_full").length, 4);
});

test("a handler's LeatError is the answer and the actor lives", async () => {
  await using pair = new TestPair();
  const ref = spawnProbe(pair.b);
  const error = await rejection(pair.a.system.ask(ref, "refuse", "not_found", SOON), "not_found");
  assertEquals(error.message, "refused with not_found");
  assertEquals((await pair.a.system.ask(ref, "echo", 1, SOON)).calls, 1);
  assertEquals(pair.b.of("stop"), []);
});

test("an answer that is not plain data is `invalid_argument`, also to a repeatable ask, and the actor lives", async () => {
  await using pair = new TestPair();
  interface Strange {
    now(request: null): unknown;
    later(request: null): unknown;
  }
  const handlers = { now: () => new Map(), later: () => Promise.resolve([new Map()]) };
  const spec = { name: "strange", create: () => ({ handlers }) };
  for (const ref of [pair.a.system.spawn<Strange>(spec), pair.b.system.spawn<Strange>(spec)]) {
    for (const limits of [SOON, { ...SOON, attemptMs: 20 }]) {
      for (const [method, place] of [["now", "body"], ["later", "body.0"]] as const) {
        const asked = pair.a.system.ask(ref, method, null, limits);
        const { message } = await rejection(asked, "invalid_argument");
        assertStringIncludes(message, `${place} is an instance of Map`);
      }
    }
  }
  assertEquals([...pair.a.of("stop"), ...pair.b.of("stop")], []);
  assertEquals(pair.a.system.linkedNodes, ["b"]);
});

test("an answer that cannot be copied for a bug ends the actor, with the error as the answer", async () => {
  await using node = new TestNode("a");
  const circle: unknown[] = [];
  circle.push(circle);
  const ref = node.system.spawn<{ get(request: null): unknown }>({
    name: "circle",
    create: () => ({ handlers: { get: () => circle } }),
  });
  await rejection(node.system.ask(ref, "get", null, { ...SOON, attemptMs: 20 }), "internal");
  await node.happened("stop");
});

test("an unknown method is `unimplemented`, inherited ones too", async () => {
  await using node = new TestNode("a");
  const ref = spawnProbe(node) as Ref as Ref<Record<string, (request: null) => null>>;
  for (const method of ["nothing", "toString", "constructor", "__proto__"]) {
    await rejection(node.system.ask(ref, method, null, SOON), "unimplemented");
  }
});

test("a message for an earlier life is answered, never obeyed", async () => {
  await using pair = new TestPair();
  const first = spawnProbe(pair.b);
  await pair.b.system.stopActor("probe");
  const second = spawnProbe(pair.b);
  assertNotEquals(first.incarnation, second.incarnation);
  const error = await rejection(
    pair.a.system.ask(first, "echo", 1, SOON),
    "failed_precondition",
  );
  assertEquals(error.details, {
    reason: "stale_incarnation",
    incarnation: second.incarnation,
  });
  pair.a.system.tell(first, "note", "stale");
  assertEquals(await pair.a.system.ask(nameOf(second), "notes", null, SOON), []);
  assertEquals(pair.b.drops, ["stale_incarnation", "stale_incarnation"]);
});

test("a dead letter is reported, and an ask of a missing actor is `not_found`", async () => {
  await using pair = new TestPair();
  for (const node of ["a", "b"]) {
    const nobody = { node, path: "/nobody" } as FencedRef<Probe>;
    pair.a.system.tell(nobody, "note", 1);
    await rejection(pair.a.system.ask(nobody, "notes", null, SOON), "not_found");
  }
  assertEquals(pair.a.drops, ["no_such_actor", "no_such_actor"]);
  assertEquals(pair.b.drops, ["no_such_actor", "no_such_actor"]);
});

test("an ask of a path that no actor can have is `not_found`, also beside one that lives", async () => {
  await using node = new TestNode("a");
  const { path } = spawnProbe(node);
  for (
    const odd of [`/${path}`, `/${path}/child`, `${path}//child`, `${path}/`, `x${path.slice(1)}`]
  ) {
    const ref = { node: "a", path: odd } as FencedRef<Probe>;
    await rejection(node.system.ask(ref, "notes", null, SOON), "not_found");
  }
});

Deno.test("an ask of a long path of missing actors looks for one of them", async () => {
  const node = new ActorNode({ node: "a", world: new DenoWorld({ logLevel: "off" }) });
  const { cells, root } = node;
  let looks = 0;
  cells.get = (path) => {
    looks++;
    return Map.prototype.get.call(cells, path);
  };
  const target = { node: "a", path: "/a".repeat(1_000) };
  await rejection(root.ask(target as Ref<Probe>, "notes", null, SOON), "not_found");
  // The look-ups of the target, and of the root that gets the answer.
  assert(looks <= 2, `${looks} look-ups`);
  await node.stop();
});

test("an ask below an actor that waits to be restarted is `unavailable`, too", async () => {
  await using node = new TestNode("a", { supervision: { backoffMinMs: 500 } });
  const { path } = spawnProbe(node);
  const child = { node: "a", path: `${path}/child/of` } as FencedRef<Probe>;
  await rejection(node.system.ask(child, "notes", null, SOON), "not_found");
  node.system.tell({ node: "a", path } as Ref<Probe>, "crash", "a bug");
  await node.happened("restart");
  await rejection(node.system.ask(child, "notes", null, SOON), "unavailable");
});

test("an unknown node is `unavailable`, at once or at the deadline of a patient ask", async () => {
  await using node = new TestNode("a");
  const nowhere = { node: "nowhere", path: "/probe" } as FencedRef<Probe>;
  await rejection(node.system.ask(nowhere, "notes", null, SOON), "unavailable");
  const patient = node.system.ask(nowhere, "notes", null, { timeoutMs: 60, attemptMs: 1000 });
  const error = await rejection(patient, "unavailable");
  assertStringIncludes(error.message, "nowhere");
});
