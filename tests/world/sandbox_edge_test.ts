/**
 * The edges between confined processes and the others, written to by somebody who keeps to no rule.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { Tensor } from "../../core/tensor.ts";
import type { Host, OpenFile } from "../../data/host.ts";
import { DenoHost } from "../../world/deno_host.ts";
import { decodeMessage, encodeMessage } from "../../transport/codec.ts";
import type { Receive } from "../../transport/process/channel.ts";
import { Payload } from "../../transport/payload.ts";
import { ANSWERING_MAX, Edge, EDGE_ASKS_MAX, type EdgeCarrier } from "../../world/sandbox/edge.ts";
import { FarRoots } from "../../world/sandbox/far_roots.ts";
import type { HostReadings } from "../../world/sandbox/host_readings.ts";
import { HostService } from "../../world/sandbox/host_service.ts";
import { splitTableOf, steppedOf, wireSplitTable } from "../../world/sandbox/untrusted_answers.ts";
import { assertEquals, assertMatch, assertRejects, assertThrows } from "../assert.ts";

/** Two ends of a carrier within this process: what one sends is encoded, and decoded at the other. */
class Carrier implements EdgeCarrier {
  readonly #closed = Promise.withResolvers<LeatError>();
  readonly closed = this.#closed.promise;
  other!: Carrier;
  #receive: Receive = () => {};

  static pair(): [Carrier, Carrier] {
    const [near, far] = [new Carrier(), new Carrier()];
    near.other = far;
    far.other = near;
    return [near, far];
  }

  send(message: unknown): Promise<void> {
    const bytes = encodeMessage(message);
    queueMicrotask(() => this.other.deliver(decodeMessage(bytes)));
    return this.writing;
  }

  /** Until when what is sent has not been written. */
  writing = Promise.resolve();

  /** What arrives, however it looks. */
  deliver(message: unknown, byteLength = 0): void {
    try {
      this.#receive(message, byteLength);
    } catch (error) {
      this.close(LeatError.from(error));
    }
  }

  start(receive: Receive): void {
    this.#receive = receive;
  }

  close(why = new LeatError("cancelled", "closed")): void {
    this.#closed.resolve(why);
  }
}

/** An edge with these methods, a bare carrier at its other end, and what it was broken by. */
function openEdge(methods: Record<string, (args: unknown) => unknown> = {}) {
  const [near, far] = Carrier.pair();
  const edge = new Edge(near, methods);
  const heard: unknown[] = [];
  let wake = () => {};
  far.start((message) => {
    heard.push(message);
    wake();
  });
  return {
    edge,
    far,
    tell: (message: unknown) => near.deliver(message),
    broken: near.closed,
    async next(): Promise<unknown> {
      while (heard.length === 0) await new Promise<void>((resolve) => wake = resolve);
      return heard.shift();
    },
    [Symbol.dispose]: () => edge.close(),
  };
}

Deno.test("Edge answers, and keeps the code of what fails", async () => {
  const [near, far] = Carrier.pair();
  new Edge(near, {
    double: (x) => (x as number) * 2,
    bytes: () => new Uint8Array([1, 2, 3]),
    fail: () => Promise.reject(new LeatError("not_found", "nothing", { details: { a: 1n } })),
    odd: () => new Map(),
  });
  const client = new Edge(far, {});
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
});

Deno.test("Edge asks no more at a time than the other side takes", async () => {
  using peer = openEdge();
  const count = EDGE_ASKS_MAX + 10;
  const answers = Array.from({ length: count }, (_, i) => peer.edge.ask("m", i));
  for (let i = 0; i < count; i++) {
    const { ask, args } = await peer.next() as { ask: number; args: number };
    assertEquals(args, i);
    peer.tell({ answer: ask, value: args });
  }
  assertEquals(await Promise.all(answers), Array.from({ length: count }, (_, i) => i));
});

Deno.test("Edge ends at whatever is no ask and no answer, and nothing is called", async () => {
  const cyclic: unknown[] = [];
  cyclic.push(cyclic);
  const messages: unknown[] = [
    null,
    "text",
    7,
    [],
    new Map([["ask", 1]]),
    new Error("ask"),
    {},
    { ask: 1 },
    { ask: 1, method: "constructor", args: ["return 1"] },
    { ask: 1, method: "__proto__" },
    { ask: 1, method: "toString" },
    { ask: 1, method: ["known"] },
    { ask: 1, method: cyclic },
    { ask: 1n, method: "known" },
    { ask: "1", method: "known" },
    { answer: 1 },
    { answer: "1", value: 1 },
    // What comlink would do as it is told.
    { id: "1", type: "APPLY", path: ["known", "constructor"], argumentList: [] },
    { id: "1", type: "SET", path: ["__proto__", "polluted"], value: { type: "RAW", value: 1 } },
  ];
  for (const message of messages) {
    let called = false;
    using peer = openEdge({ known: () => called = true });
    peer.tell(message);
    const error = await peer.broken;
    assertMatch(error.message, /broke the rules/, Deno.inspect(message));
    assertEquals(called, false);
  }
  assertEquals("polluted" in {}, false);
});

Deno.test("Edge takes no more asks at a time than it says", async () => {
  using peer = openEdge({ wait: () => new Promise(() => {}) });
  for (let ask = 0; ask <= ANSWERING_MAX; ask++) peer.tell({ ask, method: "wait" });
  assertMatch((await peer.broken).message, /more asks at a time/);
});

Deno.test("Edge ends at an ask that is longer than it says, and answers one that is as long", async () => {
  const [near, far] = Carrier.pair();
  new Edge(near, { m: (args) => args }, { askBytesMax: 1_000 });
  far.start(() => {});
  near.deliver({ ask: 1, method: "m", args: null }, 1_000);
  near.deliver({ answer: 1, value: null }, 1_001); // what the other side was asked for may be longer
  assertMatch((await near.closed).message, /an answer that nobody waits for/);
  const [again, other] = Carrier.pair();
  let isCalled = false;
  new Edge(again, { m: () => isCalled = true }, { askBytesMax: 1_000 });
  other.start(() => {});
  again.deliver({ ask: 1, method: "m", args: null }, 1_001);
  assertMatch((await again.closed).message, /an ask of 1001 bytes/);
  assertEquals(isCalled, false);
});

Deno.test("Edge counts an ask as open until its answer has been written", async () => {
  const [near, far] = Carrier.pair();
  const written = Promise.withResolvers<void>();
  near.writing = written.promise;
  let answered = 0;
  new Edge(near, { known: () => answered++ });
  far.start(() => {});
  // Nobody reads the answers.
  for (let ask = 0; ask < ANSWERING_MAX; ask++) near.deliver({ ask, method: "known" });
  await new Promise((resolve) => setTimeout(resolve, 0));
  assertEquals(answered, ANSWERING_MAX);
  near.deliver({ ask: ANSWERING_MAX, method: "known" });
  assertMatch((await near.closed).message, /more asks at a time/);
  written.resolve();
});

Deno.test("Edge ends where more asks come in a second than it says", async () => {
  const [near] = Carrier.pair();
  new Edge(near, { known: () => null }, { asksPerSecondMax: 3 });
  // Whatever second they come in, there are more in one than that.
  for (let ask = 0; ask < 100; ask++) {
    near.deliver({ ask, method: "known" });
    await Promise.resolve();
  }
  assertMatch((await near.closed).message, /more asks in a second/);
});

Deno.test("Edge bounds the errors that it is told", async () => {
  using peer = openEdge();
  const answer = peer.edge.ask("m");
  const { ask } = await peer.next() as { ask: number };
  const message = "x".repeat(1_000_000);
  const details = { list: Array.from({ length: 100_000 }, (_, i) => i) };
  const cause = { code: "internal", message };
  peer.tell({ answer: ask, error: { code: "wrong", message, details, cause } });
  const error = await assertRejects(() => answer, LeatError) as LeatError;
  assertEquals(error.code, "unknown");
  assertEquals(error.message.length < 100_000 && error.details === undefined, true);
  assertEquals((error.cause as LeatError).message.length < 100_000, true);
});

Deno.test("what a confined process answers is taken as data of the expected form, or not at all", () => {
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
  const table = [[{ start: 0, stop: 2 }], []];
  assertEquals(splitTableOf(decodeMessage(encodeMessage(wireSplitTable(table)))), table);
  const columns = (starts: unknown, stops: unknown) => [{ starts, stops }];
  const noTables: unknown[] = [
    null,
    {},
    [{}],
    [[{ start: 0, stop: 1 }]],
    columns(Float64Array.of(0), Float64Array.of()),
    columns(Float64Array.of(2), Float64Array.of(1)),
    columns(Float64Array.of(0.5), Float64Array.of(1)),
    columns(Float64Array.of(NaN), Float64Array.of(1)),
    columns(Float64Array.of(-1), Float64Array.of(1)),
    columns([0], [1]),
    columns(new Float64Array(4_000_001), new Float64Array(4_000_001)),
  ];
  for (const table of noTables) assertThrows(() => splitTableOf(table), LeatError);
});

/** Of hosts that read no other services. */
const NO_READINGS = {} as HostReadings;

/** A host that opens whatever it is asked to. */
function obligingHost(opened: string[]): Host {
  const file: OpenFile = {
    sizeBytes: 5,
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

Deno.test("HostService opens what was granted, and nothing that only looks like it", async () => {
  const opened: string[] = [];
  const service = new HostService(
    obligingHost(opened),
    new FarRoots(["s3://bucket/shards", "https://h/data/"]),
    NO_READINGS,
  );
  const { open, list, read, close } = service.methods();
  const granted = [
    "s3://bucket/shards/a.tfrecord",
    "s3://bucket/shards/a..b/.c",
    "https://h/data/x",
  ];
  for (const path of granted) {
    assertEquals((await open(path) as { sizeBytes: number }).sizeBytes, 5);
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
    const error = await assertRejects(async () => await open(path), LeatError) as LeatError;
    assertEquals(error.code, "permission_denied", String(path));
    await assertRejects(async () => await list(path), LeatError);
  }
  for (
    const path of [null, 7, ["s3://bucket/shards/a"], { toString: () => "s3://bucket/shards/a" }]
  ) {
    await assertRejects(async () => await open(path), LeatError, "no request");
  }
  // What it lists is looked at, too.
  await assertRejects(async () => await list("s3://bucket/shards/*"), LeatError, "s3://other/b");
  const requests: unknown[] = [
    null,
    {},
    { file: 99, offset: 0, bytesMax: 1 },
    { file: 1, offset: -1, bytesMax: 1 },
    { file: 1, offset: 0, bytesMax: Infinity },
    { file: 1, offset: 0.5, bytesMax: 1 },
  ];
  for (const request of requests) {
    await assertRejects(async () => await read(request), LeatError, "no request");
  }
  const got = await read({ file: 1, offset: 0, bytesMax: 1e12 });
  assertEquals(got, new Uint8Array(5).fill(7)); // no more than there is
  assertEquals(close(1), null);
  await assertRejects(async () => await read({ file: 1, offset: 0, bytesMax: 1 }), LeatError);
  assertEquals(opened.filter((path) => path === "closed").length, 1);
});

Deno.test("HostService decodes bytes, and nothing else", async () => {
  const host = new DenoHost({
    images: {
      decode: (bytes) => new Tensor("uint8", [1, 1, bytes.length], bytes.slice()),
      size: () => ({ width: 1, height: 1 }),
    },
  });
  const { decode } = new HostService(host, new FarRoots([]), NO_READINGS).methods();
  const decoded = await decode({ bytes: new Uint8Array([1, 2]), options: {} });
  assertEquals(decoded, { shape: [1, 1, 2], data: new Uint8Array([1, 2]) });
  for (const request of [null, {}, { bytes: [1] }, "bytes"]) {
    await assertRejects(async () => await decode(request), LeatError, "no request");
  }
});
