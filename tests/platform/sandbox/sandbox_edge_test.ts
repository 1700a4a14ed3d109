/** Edges between processes, with a hostile peer. */
import type { Envelope } from "../../../actors/runtime/envelope.ts";
import { ANYONE } from "../../../actors/runtime/identity.ts";
import type { Link, NodeId } from "../../../actors/runtime/link.ts";
import { LeatError } from "../../../core/error.ts";
import { Tensor } from "../../../core/tensor.ts";
import type { Host, OpenFile } from "../../../data/host.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { decodeMessage, encodeMessage } from "../../../transport/codec.ts";
import { inlinePair } from "../../../transport/inline.ts";
import { Payload } from "../../../transport/payload.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import {
  ANSWERING_MAX,
  Edge,
  EDGE_ASKS_MAX,
  type EdgeMethods,
  type EdgeOptions,
} from "../../../platform/sandbox/edge.ts";
import type { OpenedFile } from "../../../platform/sandbox/host/confined_host.ts";
import { FarRoots } from "../../../platform/sandbox/host/far_roots.ts";
import type { HostReadings } from "../../../platform/sandbox/host/host_readings.ts";
import { HostService } from "../../../platform/sandbox/host/host_service.ts";
import { splitBoundsOf, steppedOf } from "../../../platform/sandbox/untrusted_answers.ts";
import { packSplits, SPLITS_MAX } from "../../../data/sharding/split_table.ts";
import { assertEquals, assertMatch, assertRejects, assertThrows } from "../../assert.ts";

const NEAR: NodeId = { node: "near", incarnation: "aa" };
const FAR: NodeId = { node: "far", incarnation: "bb" };

/** A link whose other end is the test. */
class TestLink implements Link {
  readonly remote = FAR;
  readonly identity = ANYONE;
  readonly bufferedBytes = 0;
  readonly #closed = Promise.withResolvers<LeatError>();
  readonly closed = this.#closed.promise;
  /** Pending while the link has no space after what was sent. */
  written = Promise.resolve();
  readonly #sent: Envelope[] = [];
  #receive: (envelope: Envelope) => void = () => {};
  #wake = () => {};

  start(receive: (envelope: Envelope) => void): void {
    this.#receive = receive;
  }

  send(envelope: Envelope): boolean {
    this.#sent.push(decodeMessage(encodeMessage(envelope)) as Envelope);
    this.#wake();
    return true;
  }

  ready(): Promise<void> {
    return this.written;
  }

  close(why = new LeatError("cancelled", "closed")): void {
    this.#closed.resolve(why);
  }

  /** Delivers anything from the other end. */
  deliver(envelope: unknown): void {
    try {
      this.#receive(envelope as Envelope);
    } catch (error) {
      this.close(LeatError.from(error));
    }
  }

  /** The next message sent to it. */
  async next(): Promise<Envelope & { readonly id: number; readonly body: unknown }> {
    while (this.#sent.length === 0) await new Promise<void>((resolve) => this.#wake = resolve);
    return this.#sent.shift() as Envelope & { readonly id: number; readonly body: unknown };
  }
}

const HEAD = {
  source: { node: "far", path: "/edge", incarnation: "bb-1" },
  target: { node: "near", path: "/edge" },
  number: 1,
};

function askOf(id: number, method: string, body: unknown = null): Envelope {
  return { ...HEAD, kind: "ask", id, method, body, timeoutMs: Infinity };
}

/** An edge with these methods, and its link. */
async function openEdge(methods: EdgeMethods = {}, options: EdgeOptions = {}) {
  const link = new TestLink();
  const edge = new Edge(Promise.resolve(link), NEAR, methods, options);
  // The edge opens the link first.
  await Promise.resolve();
  return { edge, link, [Symbol.dispose]: () => edge.close() };
}

Deno.test("Edge answers, and keeps the code of errors", async () => {
  const world = new DenoWorld({ logLevel: "off" });
  const [near, far] = inlinePair(world, NEAR, world, FAR);
  const server = new Edge(Promise.resolve(near), NEAR, {
    double: (x) => (x as number) * 2,
    bytes: () => new Uint8Array([1, 2, 3]),
    fail: () => Promise.reject(new LeatError("not_found", "nothing", { details: { a: 1n } })),
    odd: () => new Map(),
  });
  const client = new Edge(Promise.resolve(far), FAR, {});
  assertEquals(await Promise.all([1, 2, 3].map((x) => client.ask("double", x))), [2, 4, 6]);
  assertEquals(await client.ask("bytes"), new Uint8Array([1, 2, 3]));
  const error = await assertRejects(() => client.ask("fail"), LeatError) as LeatError;
  assertEquals([error.code, error.message, error.details], ["not_found", "nothing", { a: 1n }]);
  for (const [method, args] of [["double", () => {}], ["odd", 1]] as const) {
    const unsendable = await assertRejects(() => client.ask(method, args), LeatError) as LeatError;
    assertEquals(unsendable.code, "invalid_argument", method);
  }
  const left = client.ask("double", 1);
  client.close(new LeatError("cancelled", "closed"));
  await assertRejects(() => left, LeatError, "closed");
  await assertRejects(() => client.ask("double", 1), LeatError, "closed");
  assertEquals((await server.closed).message, "closed");
});

Deno.test("Edge keeps requests until its link is open, and rejects them if it cannot open", async () => {
  const opening = Promise.withResolvers<Link>();
  const edge = new Edge(opening.promise, NEAR, {});
  const answers = [1, 2].map((x) => edge.ask("m", x));
  const link = new TestLink();
  opening.resolve(link);
  for (const x of [1, 2]) {
    const { id, body } = await link.next();
    assertEquals(body, x);
    link.deliver({ ...HEAD, kind: "reply", id, body: 2 * x });
  }
  assertEquals(await Promise.all(answers), [2, 4]);
  edge.close();
  const failing = new Edge(Promise.reject(new LeatError("unavailable", "gone")), NEAR, {});
  await assertRejects(() => failing.ask("m"), LeatError, "gone");
  assertEquals((await failing.closed).code, "unavailable");
  // An edge closed meanwhile closes its link.
  const late = Promise.withResolvers<Link>();
  new Edge(late.promise, NEAR, {}).close(new LeatError("aborted", "not needed"));
  const unused = new TestLink();
  late.resolve(unused);
  assertEquals((await unused.closed).code, "aborted");
});

Deno.test("Edge sends no more concurrent requests than the other side accepts", async () => {
  using peer = await openEdge();
  const count = EDGE_ASKS_MAX + 10;
  const answers = Array.from({ length: count }, (_, i) => peer.edge.ask("m", i));
  for (let i = 0; i < count; i++) {
    const { id, body } = await peer.link.next();
    assertEquals(body, i);
    peer.link.deliver({ ...HEAD, kind: "reply", id, body });
  }
  assertEquals(await Promise.all(answers), Array.from({ length: count }, (_, i) => i));
});

Deno.test("Edge sends the next waiting request in the place of one that cannot be sent", async () => {
  const opening = Promise.withResolvers<Link>();
  const edge = new Edge(opening.promise, NEAR, {});
  const askUnsendable = () =>
    Array.from(
      { length: EDGE_ASKS_MAX },
      () => assertRejects(() => edge.ask("m", () => {}), LeatError),
    );
  const early = [...askUnsendable(), edge.ask("m", "first")];
  const link = new TestLink();
  opening.resolve(link);
  const open = [await link.next()];
  const later = Array.from({ length: EDGE_ASKS_MAX - 1 }, () => edge.ask("m"));
  for (const _ of later) open.push(await link.next());
  const waiting = [...askUnsendable(), edge.ask("m", "last")];
  for (const { id } of open) link.deliver({ ...HEAD, kind: "reply", id, body: null });
  const { id, body } = await link.next();
  assertEquals([open[0]!.body, body], ["first", "last"]);
  link.deliver({ ...HEAD, kind: "reply", id, body });
  await Promise.all([...early, ...later, ...waiting]);
  edge.close();
});

Deno.test("Edge ends at anything that is neither request nor answer, and calls nothing", async () => {
  const envelopes: Envelope[] = [
    askOf(1, "constructor", ["return 1"]),
    askOf(1, "__proto__"),
    askOf(1, "toString"),
    { ...HEAD, kind: "tell", method: "known", body: null },
    { ...HEAD, kind: "watch", id: 1 },
    { ...HEAD, kind: "unwatch", id: 1 },
    { ...HEAD, kind: "down", id: 1, error: { code: "internal", message: "" } },
    { ...HEAD, kind: "reply", id: 1, body: null },
    { ...HEAD, kind: "failure", id: 1, error: { code: "internal", message: "" } },
  ];
  for (const envelope of envelopes) {
    let called = false;
    using peer = await openEdge({ known: () => called = true });
    peer.link.deliver(envelope);
    const error = await peer.link.closed;
    assertMatch(error.message, /violated its protocol/, Deno.inspect(envelope));
    assertEquals(called, false);
  }
});

Deno.test("Edge accepts no more concurrent requests than its limit", async () => {
  using peer = await openEdge({ wait: () => new Promise(() => {}) });
  for (let id = 0; id <= ANSWERING_MAX; id++) peer.link.deliver(askOf(id, "wait"));
  assertMatch((await peer.link.closed).message, /more open requests/);
});

Deno.test("Edge ends at a request over its size limit, and answers others", async () => {
  let calls = 0;
  using peer = await openEdge({ m: () => ++calls }, { askBytesMax: 1_000 });
  const asked = peer.edge.ask("m");
  peer.link.deliver(askOf(1, "m", new Uint8Array(1_000)));
  // The answer of the other side may be longer.
  peer.link.deliver({ ...HEAD, kind: "reply", id: 1, body: new Uint8Array(1_001) });
  assertEquals((await asked as Uint8Array).length, 1_001);
  peer.link.deliver(askOf(2, "m", new Uint8Array(1_001)));
  assertMatch((await peer.link.closed).message, /a request of 1001 bytes/);
  assertEquals(calls, 1);
});

Deno.test("Edge refuses requests that are too large together, until earlier ones are answered", async () => {
  const waiting: PromiseWithResolvers<number>[] = [];
  const m = () => {
    waiting.push(Promise.withResolvers<number>());
    return waiting.at(-1)!.promise;
  };
  using peer = await openEdge({ m }, { askBytesMax: 1_000 });
  for (let id = 1; id <= 5; id++) peer.link.deliver(askOf(id, "m", new Uint8Array(1_000)));
  const refused = await peer.link.next();
  assertEquals(refused.kind, "failure");
  assertMatch(JSON.stringify(refused), /"id":5.*resource_exhausted/);
  for (const { resolve } of waiting) resolve(1);
  for (let id = 1; id <= 4; id++) assertEquals((await peer.link.next()).kind, "reply");
  peer.link.deliver(askOf(6, "m", new Uint8Array(1_000)));
  waiting.at(-1)!.resolve(1);
  assertEquals([(await peer.link.next()).kind, waiting.length], ["reply", 5]);
});

Deno.test("Edge counts a request as open until the link has space after its answer", async () => {
  let answered = 0;
  using peer = await openEdge({ known: () => answered++ });
  const written = Promise.withResolvers<void>();
  peer.link.written = written.promise;
  // Answers are never read.
  for (let id = 0; id < ANSWERING_MAX; id++) peer.link.deliver(askOf(id, "known"));
  for (let id = 0; id < ANSWERING_MAX; id++) await peer.link.next();
  assertEquals(answered, ANSWERING_MAX);
  peer.link.deliver(askOf(ANSWERING_MAX, "known"));
  assertMatch((await peer.link.closed).message, /more open requests/);
  written.resolve();
});

Deno.test("Edge ends if the other side accepts no answer, not even an error", async () => {
  using peer = await openEdge({ known: () => 1 });
  peer.link.send = () => {
    throw new LeatError("resource_exhausted", "larger than the other side takes");
  };
  peer.link.deliver(askOf(1, "known"));
  assertEquals((await peer.link.closed).code, "resource_exhausted");
});

Deno.test("Edge ends at more requests in a second than its limit", async () => {
  using peer = await openEdge({ known: () => null }, { asksPerSecondMax: 3 });
  // Enough to exceed the limit in one second, however they are split over two.
  for (let id = 0; id < 100; id++) {
    peer.link.deliver(askOf(id, "known"));
    await Promise.resolve();
  }
  assertMatch((await peer.link.closed).message, /more requests in a second/);
});

Deno.test("Edge bounds the errors that it receives", async () => {
  using peer = await openEdge();
  const answer = peer.edge.ask("m");
  const { id } = await peer.link.next();
  const message = "x".repeat(1_000_000);
  const details = { list: Array.from({ length: 100_000 }, (_, i) => i) };
  const cause = { code: "internal", message };
  const told = { code: "wrong", message, details, cause };
  peer.link.deliver({ ...HEAD, kind: "failure", id, error: told });
  const error = await assertRejects(() => answer, LeatError) as LeatError;
  assertEquals(error.code, "unknown");
  assertEquals(error.message.length < 100_000 && error.details === undefined, true);
  assertEquals((error.cause as LeatError).message.length < 100_000, true);
});

Deno.test("answers of a confined process are plain data of the expected form, or refused", () => {
  const frame = new Uint8Array(3);
  const usage = { cpuSeconds: 1.5, memoryBytes: 2 };
  const step = { outcome: { kind: "element", frame: new Payload(frame) }, bytesRead: 7, usage };
  assertEquals(steppedOf(step), { outcome: { kind: "element", frame }, bytesRead: 7, usage });
  const odd = { outcome: { kind: "error", error: new Map(), more: 1 }, bytesRead: 0 };
  const { outcome } = steppedOf(odd);
  assertEquals(outcome.kind === "error" && outcome.error.code, "unknown");
  const wrong: unknown[] = [
    null,
    { outcome: { kind: "end" } },
    { outcome: { kind: "end" }, bytesRead: NaN },
    { outcome: { kind: "end" }, bytesRead: -1 },
    { outcome: { kind: "fetch" }, bytesRead: 0 },
    { outcome: { kind: "element", frame: [1, 2] }, bytesRead: 0 },
    { outcome: { kind: "element", frame: new Uint8Array(1) }, bytesRead: 0 },
    { outcome: { kind: "end" }, bytesRead: 0, usage: 7 },
    { outcome: { kind: "end" }, bytesRead: 0, usage: { cpuSeconds: NaN, memoryBytes: 1 } },
    { outcome: { kind: "end" }, bytesRead: 0, usage: { cpuSeconds: -1, memoryBytes: 1 } },
  ];
  for (const answer of wrong) assertThrows(() => steppedOf(answer), LeatError);
  const table = packSplits([[{ start: 0, stop: 2 }], []]);
  assertEquals(splitBoundsOf(decodeMessage(encodeMessage(table))), table);
  const noTables: unknown[] = [
    null,
    {},
    [{}],
    [[{ start: 0, stop: 1 }]],
    [[0, 1]],
    [Float64Array.of(0, 1, 2)],
    [Float64Array.of(2, 1)],
    [Float64Array.of(0.5, 1)],
    [Float64Array.of(NaN, 1)],
    [Float64Array.of(-1, 1)],
    Array(2).fill(new Float64Array(SPLITS_MAX + 2)),
  ];
  for (const table of noTables) assertThrows(() => splitBoundsOf(table), LeatError);
});

/** For hosts that read no other services. */
const NO_READINGS = {} as HostReadings;

/** A host that opens whatever is requested. */
function obligingHost(opened: string[]): Host {
  const file: OpenFile = {
    sizeBytes: 5,
    tag: "v1",
    read: (into) => into.fill(7).byteLength,
    close: () => opened.push("closed"),
  };
  const files: Host["files"] = {
    open: (path) => {
      opened.push(path);
      return Promise.resolve(file);
    },
    list: (pattern) => Promise.resolve([pattern.replace("*", "a"), "s3://other/b"]),
  };
  return new DenoHost({ files });
}

Deno.test("HostService opens only granted paths, and none that merely look granted", async () => {
  const opened: string[] = [];
  const service = new HostService(
    obligingHost(opened),
    new FarRoots(["s3://bucket/shards", "https://h/data/"]),
    NO_READINGS,
  );
  const { open, list, read, expect, close } = service.methods();
  const granted = [
    "s3://bucket/shards/a.tfrecord",
    "s3://bucket/shards/a..b/.c",
    "https://h/data/x",
  ];
  for (const path of granted) {
    const { sizeBytes, tag } = await open({ path }) as OpenedFile;
    assertEquals([sizeBytes, tag], [5, "v1"]);
  }
  assertEquals(opened, granted);
  const refused: unknown[] = [
    ...["/etc/passwd", "etc/passwd", "../x", "file:///etc/passwd", "s3://bucket", "s3://bucket/"],
    ...["s3://bucket/shards", "s3://bucket/shards2/a", "s3://bucket/shards/../other/a"],
    ...["s3://bucket/shards/./a", "s3://bucket/shards/%2e%2e/a", "s3://bucket/shards/%2E./a"],
    ...["s3://bucket/shards/{a,../../other/b}", "s3://bucket/shards/(a|..)/b"],
    ...["s3://bucket/shards/..\\a", "s3://bucket/shards/a%2f..%2f..", "S3://bucket/shards/a"],
    ...["s3://user@bucket/shards/a", "https://h/data", "https://h:1/data/x", "http://h/data/x"],
    ...["https://h/data/../secret", "https://evil/?https://h/data/", " s3://bucket/shards/a"],
    "s3://bucket/shards/\u0000a",
  ];
  for (const path of refused) {
    const error = await assertRejects(async () => await open({ path }), LeatError) as LeatError;
    assertEquals(error.code, "permission_denied", String(path));
    await assertRejects(async () => await list(path), LeatError);
  }
  for (const path of ["https://me:secret@h/data/x?key=1", "s3://user@bucket/shards/a"]) {
    const { message } = await assertRejects(async () => await open({ path }), LeatError);
    assertMatch(
      message,
      /^The URL of (https:\/\/h|s3:\/\/bucket)\/[^@]* has a user .*: leave them out$/,
    );
    assertEquals(message.includes("key=1"), false);
  }
  for (
    const path of [null, 7, ["s3://bucket/shards/a"], { toString: () => "s3://bucket/shards/a" }]
  ) {
    await assertRejects(async () => await open({ path }), LeatError, "no request");
  }
  for (const request of [null, granted[0], { path: granted[0], firstBytes: 0 }]) {
    await assertRejects(async () => await open(request), LeatError, "no request");
  }
  // Its listing is checked, too.
  await assertRejects(async () => await list("s3://bucket/shards/*"), LeatError, "s3://other/b");
  const { file } = await open({ path: granted[0] }) as OpenedFile;
  const requests: unknown[] = [
    null,
    {},
    { file: "1", offset: 0, bytesMax: 1 },
    { file, offset: -1, bytesMax: 1 },
    { file, offset: 0, bytesMax: Infinity },
    { file, offset: 0.5, bytesMax: 1 },
  ];
  for (const request of requests) {
    await assertRejects(async () => await read(request), LeatError, "no request");
  }
  for (const request of [null, { file, start: 0 }, { file, start: 0, stop: -1 }]) {
    assertThrows(() => expect(request), LeatError, "no request");
  }
  const got = await read({ file, offset: 0, bytesMax: 1e12 });
  assertEquals(got, new Uint8Array(5).fill(7)); // no more than there is
  assertEquals(close(file), null);
  await assertRejects(async () => await read({ file, offset: 0, bytesMax: 1 }), LeatError);
  assertEquals(opened.filter((path) => path === "closed").length, 1);
});

Deno.test("HostService reads nothing of a file that the process before it had opened", async () => {
  const make = () =>
    new HostService(obligingHost([]), new FarRoots(["https://h/data/"]), NO_READINGS).methods();
  const [before, after] = [make(), make()];
  const { file } = await before.open({ path: "https://h/data/a" }) as OpenedFile;
  await after.open({ path: "https://h/data/b" });
  const read = async () => await after.read({ file, offset: 0, bytesMax: 5 });
  const { code } = await assertRejects(read, LeatError, "has ended") as LeatError;
  assertEquals(code, "unavailable");
});

Deno.test("HostService decodes only bytes", async () => {
  const host = new DenoHost({
    images: {
      decode: (bytes) => new Tensor("uint8", [1, 1, bytes.length], bytes.slice()),
      size: () => ({ width: 1, height: 1 }),
    },
  });
  const { decode } = new HostService(host, new FarRoots([]), NO_READINGS).methods();
  const decoded = await decode({ bytes: new Uint8Array([1, 2]), options: {} });
  assertEquals(decoded, { dtype: "uint8", shape: [1, 1, 2], data: new Uint8Array([1, 2]) });
  for (const request of [null, {}, { bytes: [1] }, "bytes"]) {
    await assertRejects(async () => await decode(request), LeatError, "no request");
  }
});
