/**
 * The edges between confined threads and the others, written to by somebody who keeps to no rule.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { Tensor } from "../../core/tensor.ts";
import type { Host, OpenFile } from "../../data/host.ts";
import { DenoHost } from "../../world/deno_host.ts";
import { Edge, EDGE_ASKS_MAX, Moved } from "../../world/sandbox/edge.ts";
import { HostService } from "../../world/sandbox/host_service.ts";
import { splitTableOf, steppedOf } from "../../world/sandbox/untrusted_answers.ts";
import { assertEquals, assertMatch, assertRejects, assertThrows } from "../assert.ts";

/** An edge with these methods, a bare port at its other end, and what it was broken by. */
function openEdge(methods: Record<string, (args: unknown) => unknown> = {}) {
  const { port1, port2 } = new MessageChannel();
  const broken = Promise.withResolvers<LeatError>();
  const edge = new Edge(port1, methods, broken.resolve);
  const heard: unknown[] = [];
  let wake = () => {};
  port2.onmessage = ({ data }) => {
    heard.push(data);
    wake();
  };
  return {
    edge,
    port: port2,
    broken: broken.promise,
    async next(): Promise<unknown> {
      while (heard.length === 0) await new Promise<void>((resolve) => wake = resolve);
      return heard.shift();
    },
    [Symbol.dispose]() {
      edge.close();
      port2.close();
    },
  };
}

Deno.test("Edge answers, and keeps the code of what fails", async () => {
  const { port1, port2 } = new MessageChannel();
  const bytes = new Uint8Array([1, 2, 3]);
  const server = new Edge(port1, {
    double: (x) => (x as number) * 2,
    bytes: () => new Moved(bytes, [bytes.buffer]),
    fail: () => Promise.reject(new LeatError("not_found", "nothing", { details: { a: 1n } })),
  });
  const client = new Edge(port2, {});
  assertEquals(await Promise.all([1, 2, 3].map((x) => client.ask("double", x))), [2, 4, 6]);
  assertEquals(await client.ask("bytes"), new Uint8Array([1, 2, 3]));
  assertEquals(bytes.byteLength, 0); // it has moved
  const error = await assertRejects(() => client.ask("fail"), LeatError) as LeatError;
  assertEquals([error.code, error.message, error.details], ["not_found", "nothing", { a: 1n }]);
  const uncloneable = await assertRejects(() => client.ask("double", () => {}), LeatError);
  assertEquals((uncloneable as LeatError).code, "invalid_argument");
  const left = client.ask("double", 1);
  client.close(new LeatError("cancelled", "closed"));
  await assertRejects(() => left, LeatError, "closed");
  await assertRejects(() => client.ask("double", 1), LeatError, "closed");
  server.close();
});

Deno.test("Edge asks no more at a time than the other side takes", async () => {
  using peer = openEdge();
  const count = EDGE_ASKS_MAX + 10;
  const answers = Array.from({ length: count }, (_, i) => peer.edge.ask("m", i));
  for (let i = 0; i < count; i++) {
    const { ask, args } = await peer.next() as { ask: number; args: number };
    assertEquals(args, i);
    peer.port.postMessage({ answer: ask, value: args });
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
    peer.port.postMessage(message);
    const error = await peer.broken;
    assertMatch(error.message, /broke the rules/, Deno.inspect(message));
    assertEquals(called, false);
  }
  assertEquals("polluted" in {}, false);
});

Deno.test("Edge takes no more asks at a time than it says", async () => {
  using peer = openEdge({ wait: () => new Promise(() => {}) });
  for (let ask = 0; ask <= EDGE_ASKS_MAX; ask++) peer.port.postMessage({ ask, method: "wait" });
  assertMatch((await peer.broken).message, /more asks at a time/);
});

Deno.test("Edge bounds the errors that it is told", async () => {
  using peer = openEdge();
  const answer = peer.edge.ask("m");
  const { ask } = await peer.next() as { ask: number };
  const message = "x".repeat(1_000_000);
  const details = { list: Array.from({ length: 100_000 }, (_, i) => i) };
  const cause = { code: "internal", message };
  peer.port.postMessage({ answer: ask, error: { code: "wrong", message, details, cause } });
  const error = await assertRejects(() => answer, LeatError) as LeatError;
  assertEquals(error.code, "unknown");
  assertEquals(error.message.length < 100_000 && error.details === undefined, true);
  assertEquals((error.cause as LeatError).message.length < 100_000, true);
});

Deno.test("what a confined thread answers is taken as data of the expected form, or not at all", () => {
  const frame = new Uint8Array(3);
  assertEquals(steppedOf({ outcome: { kind: "element", frame }, bytesRead: 7 }), {
    outcome: { kind: "element", frame },
    bytesRead: 7,
  });
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
    { outcome: { kind: "element", frame: new ArrayBuffer(1) }, bytesRead: 0 },
  ];
  for (const answer of wrong) assertThrows(() => steppedOf(answer), LeatError);
  assertEquals(splitTableOf([[{ start: 0, stop: 2, more: 1 }], []]), [[{ start: 0, stop: 2 }], []]);
  const noTables: unknown[] = [
    null,
    {},
    [{}],
    [[{ start: 0 }]],
    [[{ start: 2, stop: 1 }]],
    [[{ start: "0", stop: 1 }]],
    [[[0, 1]]],
  ];
  for (const table of noTables) assertThrows(() => splitTableOf(table), LeatError);
});

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
  const service = new HostService(obligingHost(opened), ["s3://bucket/shards", "https://h/data/"]);
  const { open, list, read, close } = service.methods();
  const granted = [
    "s3://bucket/shards/a.tfrecord",
    "s3://bucket/shards/a..b/.c",
    "https://h/data/x",
  ];
  for (const path of granted) {
    assertEquals((await open!(path) as { sizeBytes: number }).sizeBytes, 5);
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
    const error = await assertRejects(async () => await open!(path), LeatError) as LeatError;
    assertEquals(error.code, "permission_denied", String(path));
    await assertRejects(async () => await list!(path), LeatError);
  }
  for (
    const path of [null, 7, ["s3://bucket/shards/a"], { toString: () => "s3://bucket/shards/a" }]
  ) {
    await assertRejects(async () => await open!(path), LeatError, "no request");
  }
  // What it lists is looked at, too.
  await assertRejects(async () => await list!("s3://bucket/shards/*"), LeatError, "s3://other/b");
  const requests: unknown[] = [
    null,
    {},
    { file: 99, offset: 0, bytesMax: 1 },
    { file: 1, offset: -1, bytesMax: 1 },
    { file: 1, offset: 0, bytesMax: Infinity },
    { file: 1, offset: 0.5, bytesMax: 1 },
  ];
  for (const request of requests) {
    await assertRejects(async () => await read!(request), LeatError, "no request");
  }
  const got = await read!({ file: 1, offset: 0, bytesMax: 1e12 }) as Moved;
  assertEquals(got.value, new Uint8Array(5).fill(7)); // no more than there is
  assertEquals(close!(1), null);
  await assertRejects(async () => await read!({ file: 1, offset: 0, bytesMax: 1 }), LeatError);
  service.dispose();
  assertEquals(opened.filter((path) => path === "closed").length, granted.length);
});

Deno.test("HostService decodes bytes that nobody else can change, and nothing else", async () => {
  const host = new DenoHost({
    images: {
      decode: (bytes) => new Tensor("uint8", [1, 1, bytes.length], bytes.slice()),
      size: () => ({ width: 1, height: 1 }),
    },
  });
  const { decode } = new HostService(host, []).methods();
  const decoded = await decode!({ bytes: new Uint8Array([1, 2]), options: {} }) as Moved;
  assertEquals(decoded.value, { shape: [1, 1, 2], data: new Uint8Array([1, 2]) });
  const shared = new Uint8Array(new SharedArrayBuffer(2));
  for (const request of [null, {}, { bytes: [1] }, { bytes: shared, options: {} }, "bytes"]) {
    await assertRejects(async () => await decode!(request), LeatError, "no request");
  }
});
