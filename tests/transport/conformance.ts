/**
 * The contract of every carrier, as one suite. At the end it prints a table: scenario × carrier.
 */

import type { Envelope } from "../../actors/runtime/envelope.ts";
import { LeatError } from "../../core/error.ts";
import { tensor } from "../../core/tensor.ts";
import { Payload } from "../../transport/payload.ts";
import { rejection } from "../actors/runtime/nodes.ts";
import { assert, assertEquals, assertInstanceOf, assertStringIncludes } from "../assert.ts";
import {
  bodyOf,
  type CarrierUnderTest,
  dialBoth,
  FAR,
  Inbox,
  keptBody,
  MB,
  NEAR,
  note,
  type Probe,
  probe,
  results,
  type Run,
  SOON,
  tellOf,
  withSystems,
} from "./conformance_lib.ts";

const SCENARIOS: Readonly<Record<string, Run>> = {
  "order per pair, nothing twice": orderPerPair,
  "a repeated ask gets no second turn": noDuplicateTurn,
  "closed settles every ask": closedSettles,
  "close tells both ends why, once": closeTellsBoth,
  "envelopes before start are kept": keptBeforeStart,
  "backpressure holds memory": backpressure,
  "oversize refused with size and limit": oversize,
  "stale incarnation answered": staleIncarnation,
  "every kind of envelope arrives as it was": everyKind,
  "payloads intact and aligned": payloadsIntact,
  "a kept body can be sent again": keptBody,
  "what is not plain data is refused": notPlainData,
  "a large message whole, a control message meanwhile": largeMessage,
  "messages unchanged that are kept while others come": keptMessages,
  "link cut in the middle of a message": cutMidMessage,
  "both sides dial at once": dialBoth,
};

/**
 * Registers a test for each scenario.
 *
 * @param name The carrier's, for the names of the tests.
 * @param open Creates the carrier for each scenario.
 * @param isPromised Which scenarios hold on this carrier. Default: all.
 */
export function conformance(
  name: string,
  open: () => Promise<CarrierUnderTest>,
  isPromised: (scenario: string) => boolean = () => true,
): void {
  if (results.size === 0) globalThis.addEventListener("unload", printTable);
  for (const [scenario, run] of Object.entries(SCENARIOS)) {
    if (!isPromised(scenario)) continue;
    Deno.test(`${name}: ${scenario}`, async () => {
      const carrier = await open();
      note(scenario, carrier.name, "failed");
      try {
        await run(carrier);
      } finally {
        await carrier.close();
      }
      note(scenario, carrier.name, "ok");
    });
  }
}

function printTable(): void {
  const carriers = [...new Set([...results.values()].flatMap((row) => [...row.keys()]))];
  const wide = Math.max(...[...results.keys()].map(({ length }) => length));
  const line = (head: string, cells: readonly string[]) =>
    head.padEnd(wide) + cells.map((cell) => cell.padStart(13)).join("");
  console.log(`\n${line("scenario × carrier", carriers)}`);
  for (const [scenario, row] of results) {
    console.log(line(scenario, carriers.map((carrier) => row.get(carrier) ?? "–")));
  }
}

async function orderPerPair(carrier: CarrierUnderTest): Promise<void> {
  await withSystems(carrier, async ({ near, far, probe }) => {
    const drops: string[] = [];
    far.inspect((event) => {
      if (event.type === "drop") drops.push(event.reason);
      if (event.type === "gap") drops.push("gap");
    });
    // Sizes below and above every threshold that a carrier might have.
    const sizes = [0, 100, 10_000, 70_000, 1, 300_000, 5 * MB, 2, 50_000, 5 * MB, 3];
    const expected: number[] = [];
    for (let i = 0; i < 200; i++) {
      const size = i < 20 ? sizes[i % sizes.length]! : i % 7;
      near.tell(probe, "note", { i, bytes: new Uint8Array(size) });
      expected.push(i);
    }
    const notes = await carrier.run(near.ask(probe, "notes", null, SOON));
    assertEquals(notes.map((item) => (item as { i: number }).i), expected);
    assertEquals(drops, []);
  });
}

async function noDuplicateTurn(carrier: CarrierUnderTest): Promise<void> {
  await withSystems(carrier, async ({ near, probe }) => {
    const options = { ...SOON, attemptMs: 1 };
    const asks = Array.from({ length: 300 }, () => near.ask(probe, "count", null, options));
    const counts = await carrier.run(Promise.all(asks));
    assertEquals(counts.toSorted((a, b) => a - b), Array.from({ length: 300 }, (_, i) => i + 1));
  });
}

async function closedSettles(carrier: CarrierUnderTest): Promise<void> {
  for (const how of ["near", "far", "cut"] as const) {
    await withSystems(carrier, async ({ near, probe, joined }) => {
      const asks = Array.from(
        { length: 20 },
        () => rejection(near.ask(probe, "wait", null, { timeoutMs: 3_600_000 }), "unavailable"),
      );
      await carrier.settle();
      if (how === "cut") joined.cut();
      else joined[how].close(new LeatError("unavailable", "closed for the test"));
      await carrier.run(Promise.all(asks));
      assertEquals(near.linkedNodes, []);
      assertInstanceOf(await carrier.run(joined.far.closed), LeatError);
    });
  }
}

async function staleIncarnation(carrier: CarrierUnderTest): Promise<void> {
  await withSystems(carrier, async ({ near, far, probe: first }) => {
    await carrier.run(far.stopActor("probe"));
    const second = far.spawn<Probe>({ name: "probe", create: probe });
    const asked = near.ask(first, "count", null, SOON);
    const error = await carrier.run(rejection(asked, "failed_precondition"));
    assertEquals(error.details, {
      reason: "stale_incarnation",
      incarnation: second.incarnation,
    });
    assertEquals(await carrier.run(near.ask(second, "count", null, SOON)), 1);
  });
}

async function largeMessage(carrier: CarrierUnderTest): Promise<void> {
  const byteLength = carrier.largeBytes ?? 100 * MB;
  await withSystems(carrier, async ({ near, far, probe: ref }) => {
    const other = far.spawn<Probe>({ name: "other", create: probe });
    const order: string[] = [];
    far.inspect((event) => {
      if (event.type === "deliver") order.push(event.envelope.target.path);
    });
    const bytes = new Uint8Array(byteLength);
    for (let i = 0; i < byteLength; i += 4099) bytes[i] = i % 251;
    const large = near.ask(ref, "echo", new Payload(bytes, { shared: true }), SOON);
    const control = near.ask(other, "count", null, SOON);
    assertEquals(await carrier.run(control), 1);
    const echoed = await carrier.run(large) as Payload;
    assertEquals(order, carrier.overtakes ? ["/other", "/probe"] : ["/probe", "/other"]);
    assertEquals(echoed.byteLength, byteLength);
    for (let i = 0; i < byteLength; i += 4099) {
      if (echoed.bytes[i] !== i % 251) throw new Error(`byte ${i} is damaged`);
    }
  });
}

async function keptMessages(carrier: CarrierUnderTest): Promise<void> {
  await withSystems(carrier, async ({ near, probe: ref }) => {
    const kept: Payload[] = [];
    for (let round = 0; round < 3; round++) {
      // Whole frames and fragments of a WebSocket, and slots of a process.
      const asked = [1, 1, 5, 1, 5].map((mb, i) => {
        const bytes = new Uint8Array(mb * MB).fill(round * 5 + i);
        return near.ask(ref, "echo", new Payload(bytes, { shared: true }), SOON);
      });
      kept.push(...await carrier.run(Promise.all(asked)) as Payload[]);
    }
    for (const [i, { bytes }] of kept.entries()) {
      if (!bytes.every((byte) => byte === i)) throw new Error(`message ${i} has changed`);
    }
  });
}

async function closeTellsBoth(carrier: CarrierUnderTest): Promise<void> {
  const { near, far } = await carrier.run(carrier.join(NEAR, FAR));
  assertEquals([near.remote, far.remote], [FAR, NEAR]);
  near.start(() => {});
  far.start(() => {});
  const reason = new LeatError("resource_exhausted", "closed for the test");
  near.close(reason);
  near.close(new LeatError("internal", "too late"));
  assertEquals(near.send(tellOf(1)), false);
  assertEquals((await carrier.run(near.closed)).message, reason.message);
  const heard = await carrier.run(far.closed);
  assertEquals([heard.code, heard.message], [reason.code, reason.message]);
  assertEquals(far.send(tellOf(1)), false);
  await carrier.run(Promise.all([near.ready(), far.ready()]));
  far.close();
}

async function keptBeforeStart(carrier: CarrierUnderTest): Promise<void> {
  const { near, far } = await carrier.run(carrier.join(NEAR, FAR));
  near.start(() => {});
  for (let i = 0; i < 50; i++) assert(near.send(tellOf(i)));
  await carrier.settle();
  const inbox = new Inbox(far);
  assert(near.send(tellOf(50)));
  await carrier.run(inbox.has(51));
  assertEquals(inbox.envelopes.map(bodyOf), Array.from({ length: 51 }, (_, i) => i));
  near.close();
  await carrier.run(far.closed);
}

async function backpressure(carrier: CarrierUnderTest): Promise<void> {
  const limits = { highWaterBytes: MB, lowWaterBytes: MB / 4 };
  const { near, far } = await carrier.run(carrier.join(NEAR, FAR, limits));
  near.start(() => {});
  const total = 200;
  const block = 100_000;
  let sent = 0;
  let highest = 0;
  const sending = (async () => {
    for (; sent < total; sent++) {
      await near.ready();
      near.send(tellOf(new Payload(new Uint8Array(block).fill(sent))));
      highest = Math.max(highest, near.bufferedBytes);
    }
  })();
  // The other end does not read: the sender must stop.
  let before = -1;
  while (before !== sent) {
    before = sent;
    await carrier.settle();
  }
  assert(sent < total / 4, `${sent} blocks went to a receiver that does not read`);
  assert(highest <= limits.highWaterBytes + 2 * block, `${highest} bytes were buffered`);
  const inbox = new Inbox(far);
  await carrier.run(sending);
  await carrier.run(inbox.has(total));
  const first = inbox.envelopes.map((envelope) => (bodyOf(envelope) as Payload).bytes[0]);
  assertEquals(first, Array.from({ length: total }, (_, i) => i));
  near.close();
  await carrier.run(far.closed);
}

async function oversize(carrier: CarrierUnderTest): Promise<void> {
  const { near, far } = await carrier.run(carrier.join(NEAR, FAR, { messageBytesMax: MB }));
  near.start(() => {});
  const inbox = new Inbox(far);
  let refused: unknown;
  try {
    near.send(tellOf(new Payload(new Uint8Array(2 * MB))));
  } catch (error) {
    refused = error;
  }
  assertInstanceOf(refused, LeatError);
  assertEquals(refused.code, "resource_exhausted");
  assert(Number(/\b(2\d{6})\b/.exec(refused.message)?.[1]) >= 2 * MB, refused.message);
  assertStringIncludes(refused.message, String(MB));
  assert(near.send(tellOf("still there")));
  await carrier.run(inbox.has(1));
  assertEquals(inbox.envelopes.map(bodyOf), ["still there"]);
  near.close();
  await carrier.run(far.closed);
}

async function everyKind(carrier: CarrierUnderTest): Promise<void> {
  const { near, far } = await carrier.run(carrier.join(NEAR, FAR));
  near.start(() => {});
  const inbox = new Inbox(far);
  const source = { node: "near", path: "/s", incarnation: `${NEAR.incarnation}-1` };
  const target = { node: "far", path: "/t", incarnation: "bb-1" };
  const name = { node: "far", path: "/t" };
  const error = new LeatError("aborted", "why", {
    cause: new Error("deeper"),
    details: { n: 1 },
  }).toWire();
  const body = {
    text: "é𝄞",
    list: [1, null, true, -0.5],
    big: 2n ** 60n,
    none: null,
    deep: [[[]]],
  };
  const sent: Envelope[] = [
    { kind: "tell", source, target, number: 1, method: "m", body },
    { kind: "ask", source, target: name, number: 2, id: 1, method: "m", body: 0, timeoutMs: 5 },
    {
      kind: "ask",
      source,
      target,
      number: 3,
      id: 2,
      method: "m",
      body: "",
      timeoutMs: 0.5,
      settledBelow: 1,
      open: [1, 2],
    },
    { kind: "reply", source, target, number: 4, id: 3, body: [] },
    { kind: "failure", source, target, number: 5, id: 4, error },
    { kind: "watch", source, target: name, number: 6, id: 5 },
    { kind: "unwatch", source, target: name, number: 7, id: 5 },
    { kind: "down", source, target, number: 8, id: 5, error },
  ];
  for (const envelope of sent) assert(near.send(envelope));
  await carrier.run(inbox.has(sent.length));
  assertEquals(inbox.envelopes, sent);
  near.close();
  await carrier.run(far.closed);
}

async function payloadsIntact(carrier: CarrierUnderTest): Promise<void> {
  const { near, far } = await carrier.run(carrier.join(NEAR, FAR));
  near.start(() => {});
  const inbox = new Inbox(far);
  const large = new Uint8Array(1000).fill(9);
  const shared = new Uint8Array(new SharedArrayBuffer(16)).fill(7);
  near.send(tellOf({
    floats: new Float64Array([1.5, -2]),
    part: large.subarray(3, 8),
    tensor: tensor([[1, 2], [3, 4]]),
    texts: tensor(["a", "bc"]),
    inner: [new Payload(new Uint8Array([1, 2, 3])), new Payload(large.subarray(1, 18))],
    shared: new Payload(shared),
    empty: new Payload(new Uint8Array(0)),
  }));
  const withRoom = new Uint8Array(2_048 + 999).map((_, i) => i % 256).subarray(2_048);
  near.send(tellOf(new Payload(withRoom, { isAlone: true })));
  await carrier.run(inbox.has(2));
  const [first, second] = inbox.envelopes.map(bodyOf) as [
    Record<string, unknown> & { inner: Payload[]; shared: Payload; empty: Payload },
    Payload,
  ];
  assertEquals(first.floats, new Float64Array([1.5, -2]));
  assertEquals([...first.part as Uint8Array], [9, 9, 9, 9, 9]);
  assertEquals(first.tensor, tensor([[1, 2], [3, 4]]));
  assertEquals(first.texts, tensor(["a", "bc"]));
  assertEquals(first.inner.map(({ bytes }) => [...bytes]), [[1, 2, 3], Array(17).fill(9)]);
  assertEquals([...first.shared.bytes], Array(16).fill(7));
  assertEquals(first.empty.byteLength, 0);
  assertInstanceOf(second, Payload);
  assert(second.bytes.every((byte, i) => byte === i % 256));
  assertEquals(second.bytes.byteOffset % 64, 0);
  assertEquals(large.length, 1000, "only what was handed over may be gone");
  near.close();
  await carrier.run(far.closed);
}

async function notPlainData(carrier: CarrierUnderTest): Promise<void> {
  const { near, far } = await carrier.run(carrier.join(NEAR, FAR));
  near.start(() => {});
  const inbox = new Inbox(far);
  for (const strange of [() => 1, Symbol("s"), new Map(), new Date(0)]) {
    let refused: unknown;
    try {
      near.send(tellOf({ list: [0, strange] }));
    } catch (error) {
      refused = error;
    }
    assertInstanceOf(refused, LeatError, String(strange));
    assertEquals(refused.code, "invalid_argument");
    assertStringIncludes(refused.message, "list");
  }
  assert(near.send(tellOf("still there")));
  await carrier.run(inbox.has(1));
  near.close();
  await carrier.run(far.closed);
}

async function cutMidMessage(carrier: CarrierUnderTest): Promise<void> {
  const { near, far, cut } = await carrier.run(carrier.join(NEAR, FAR));
  near.start(() => {});
  const inbox = new Inbox(far);
  near.send(tellOf("before"));
  await carrier.run(inbox.has(1));
  near.send(tellOf(new Payload(new Uint8Array(50 * MB)), { source: "/large" }));
  near.send(tellOf("after"));
  cut();
  const ends = await carrier.run(Promise.all([near.closed, far.closed]));
  for (const end of ends) assertInstanceOf(end, LeatError);
  await carrier.settle();
  for (const body of inbox.envelopes.map(bodyOf)) {
    assert(!(body instanceof Payload) || body.byteLength === 50 * MB, "half a message arrived");
  }
  assertEquals(near.bufferedBytes, 0);
  await carrier.run(near.ready());
  assertEquals([near.send(tellOf(1)), far.send(tellOf(1))], [false, false]);
}
