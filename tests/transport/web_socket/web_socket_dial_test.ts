/** Dialling: the listener may be no Leat node, misbehave, freeze or come back. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { Envelope } from "../../../actors/runtime/envelope.ts";
import type { Link, NodeId } from "../../../actors/runtime/link.ts";
import type { Ref } from "../../../actors/runtime/ref.ts";
import { ActorSystem } from "../../../actors/runtime/system.ts";
import { LeatError } from "../../../core/error.ts";
import { encodeMessage } from "../../../transport/codec.ts";
import { webSocketConnector } from "../../../transport/web_socket.ts";
import { serveWebSocket } from "../../../transport/web_socket/server.ts";
import { dialSocket } from "../../../transport/web_socket/connector.ts";
import { FRAME_BYTES_MAX } from "../../../transport/web_socket/frames.ts";
import { WINDOW_BYTES } from "../../../transport/web_socket/outbox.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { type Probe, rejection, SOON } from "../../actors/runtime/nodes.ts";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "../../assert.ts";
import { startChild } from "../../lib/child.ts";
import { freePort } from "../../lib/free_port.ts";
import { StillWorld } from "../../lib/still_world.ts";
import { PATIENCE_MS, until } from "../../lib/until.ts";
import type { Mirror } from "../fixture_listener.ts";
import { asking } from "../tokens.ts";
import { Listener } from "./strangers.ts";

const LOCAL: NodeId = { node: "dialler", incarnation: "00000000000000cc" };
const LISTENER: NodeId = { node: "listener", incarnation: "00000000000000dd" };
const HELLO = encodeMessage({
  kind: "hello",
  version: 1,
  role: "listener",
  node: "stranger",
  incarnation: "00",
  messageBytesMax: 1_000_000,
});

/** A TCP server with scripted answers. */
class RawServer implements AsyncDisposable {
  readonly address: string;
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #connections: Deno.TcpConn[] = [];
  readonly #loop: Promise<void>;

  constructor(serve: (connection: Deno.TcpConn, request: string) => Promise<void>) {
    this.address = `ws://127.0.0.1:${this.#listener.addr.port}`;
    this.#loop = this.#accept(serve);
  }

  async #accept(serve: (connection: Deno.TcpConn, request: string) => Promise<void>) {
    const serving: Promise<void>[] = [];
    for await (const connection of this.#listener) {
      this.#connections.push(connection);
      serving.push(readText(connection).then((request) => serve(connection, request)));
    }
    await Promise.all(serving);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    for (const connection of this.#connections) {
      try {
        connection.close();
      } catch {
        // Closed by the test.
      }
    }
    await this.#loop;
  }
}

async function readText(connection: Deno.TcpConn): Promise<string> {
  const bytes = new Uint8Array(65_536);
  const count = await connection.read(bytes);
  return new TextDecoder().decode(bytes.subarray(0, count ?? 0));
}

async function write(connection: Deno.TcpConn, ...parts: (string | Uint8Array)[]): Promise<void> {
  const bytes = Buffer.concat(parts.map((part) => Buffer.from(part as Uint8Array)));
  for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
}

/** The acceptance of an upgrade. */
function consent(request: string): string {
  const key = /^sec-websocket-key: (\S+)\r$/m.exec(request)?.[1];
  const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest("base64");
  return `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
    `Sec-WebSocket-Accept: ${accept}\r\n\r\n`;
}

/** A server's frame: not masked. */
function frame(opcode: number, payload: Uint8Array, isLast = true): Uint8Array {
  const { length } = payload;
  const head = length < 126 ? [length] : [126, length >> 8, length & 0xff];
  return new Uint8Array([(isLast ? 0x80 : 0) | opcode, ...head, ...payload]);
}

/** Reads the frames that a dialler sends. */
class DiallerFrames {
  readonly #connection: Deno.TcpConn;
  #bytes = new Uint8Array(0);

  constructor(connection: Deno.TcpConn) {
    this.#connection = connection;
  }

  /** The payload of the next frame of that kind. */
  async ofKind(opcode: number): Promise<Uint8Array> {
    for (;;) {
      const head = await this.#take(2);
      const short = head[1]! & 0x7f;
      const long = await this.#take(short === 126 ? 2 : 0);
      const key = await this.#take(4);
      const masked = await this.#take(short === 126 ? long[0]! << 8 | long[1]! : short);
      if ((head[0]! & 0x0f) === opcode) return masked.map((byte, i) => byte ^ key[i % 4]!);
    }
  }

  async #take(count: number): Promise<Uint8Array> {
    while (this.#bytes.length < count) {
      const more = new Uint8Array(4096);
      const length = await this.#connection.read(more);
      if (length === null) throw new Error("closed in the middle of a frame");
      this.#bytes = new Uint8Array([...this.#bytes, ...more.subarray(0, length)]);
    }
    const taken = this.#bytes.slice(0, count);
    this.#bytes = this.#bytes.slice(count);
    return taken;
  }
}

function connect(address: string): Promise<Link> {
  const world = new DenoWorld({ logLevel: "off" });
  return webSocketConnector({ world, connectTimeoutMs: 60_000 }).connect(address, LOCAL);
}

function tellOf(number: number, body: unknown): Envelope {
  return {
    kind: "tell",
    source: { node: "stranger", path: "/s", incarnation: "00-1" },
    target: { node: "dialler", path: "/t" },
    number,
    method: "note",
    body,
  };
}

const ANSWERS: Readonly<Record<string, (request: string) => string>> = {
  "HTTP 404": () => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
  "HTTP 200": () => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
  "does not speak HTTP": () => "220 mail.example ESMTP\r\n\r\n",
  "does not answer this one": () =>
    "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: x\r\n\r\n",
  // An expression that tries where the spaces end, and where the value does, takes hours.
  "an invalid header": () => `HTTP/1.1 401 Unauthorized\r\na:${" ".repeat(16_000)}x\ny\r\n\r\n`,
  "more than 16384 bytes": () => `HTTP/1.1 101 Switching Protocols\r\nX: ${"x".repeat(20_000)}`,
};

for (const [expected, answer] of Object.entries(ANSWERS)) {
  Deno.test(`dialling anything but a Leat node is "unavailable": ${expected}`, async () => {
    await using server = new RawServer((connection, request) => write(connection, answer(request)));
    const error = await rejection(connect(server.address), "unavailable");
    assertStringIncludes(error.message, server.address);
    assertStringIncludes(error.message, expected);
  });
}

Deno.test("a server that hangs up before it answers is `unavailable`", async () => {
  await using server = new RawServer((connection) => Promise.resolve(connection.close()));
  await rejection(connect(server.address), "unavailable");
});

const MISDEEDS: Readonly<Record<string, Uint8Array>> = {
  "masks": new Uint8Array([0x82, 0x81, 0, 0, 0, 0, 1]),
  "uses reserved bits": new Uint8Array([0xc2, 1, 1]),
  "claims a frame of 8 EiB": new Uint8Array([0x82, 127, 0x7f, 255, 255, 255, 255, 255, 255, 255]),
  "claims a frame over the limit": new Uint8Array([0x82, 127, 0, 0, 0, 0, 0, 0x40, 0, 1]),
  "continues nothing": frame(0x0, new Uint8Array(3)),
  "begins a message inside of another": new Uint8Array([
    ...frame(0x2, new Uint8Array(1), false),
    ...frame(0x2, new Uint8Array(1)),
  ]),
  "sends an unknown kind of frame": frame(0x3, new Uint8Array(1)),
  "sends text": frame(0x1, new Uint8Array([65])),
  "acknowledges what was never sent": frame(0x2, new Uint8Array([3, 0, 0, 0, 0, 0, 0, 9, 9])),
};

for (const [name, bytes] of Object.entries(MISDEEDS)) {
  Deno.test(`a server that ${name} loses its link`, async () => {
    await using server = new RawServer(async (connection, request) => {
      await write(connection, consent(request), frame(2, HELLO), bytes);
      await connection.closeWrite();
    });
    const link = await connect(server.address);
    link.start(() => {});
    assertEquals((await link.closed).code, "invalid_argument");
    assertEquals(link.send(tellOf(1, 1)), false);
    await link.released;
  });
}

Deno.test("a ping between the frames of a message is no part of it", async () => {
  const part = new Uint8Array(2 ** 15);
  const parts = Array.from(
    { length: FRAME_BYTES_MAX / part.length },
    (_, i) => frame(i === 0 ? 0x2 : 0x0, part, false),
  );
  await using server = new RawServer(async (connection, request) => {
    const ping = frame(0x9, new Uint8Array(1));
    await write(connection, consent(request), ...parts, ping, frame(0x0, new Uint8Array(0)));
  });
  const world = new DenoWorld({ logLevel: "off" });
  const { signal } = new AbortController();
  const url = new URL(server.address);
  const socket = await dialSocket({ world, url, side: undefined, ca: undefined, signal });
  const heard = Promise.withResolvers<number | string>();
  socket.listen({ message: ({ length }) => heard.resolve(length), closed: heard.resolve });
  assertEquals(await heard.promise, FRAME_BYTES_MAX);
  socket.drop();
});

Deno.test("messages in parts, cut anywhere, arrive whole; a ping is answered, a close returned", async () => {
  const heard = Promise.withResolvers<Uint8Array[]>();
  await using server = new RawServer(async (connection, request) => {
    const message = encodeMessage(tellOf(1, new Uint8Array(1_000).fill(5)));
    const bytes = Buffer.concat([
      frame(0x2, HELLO),
      frame(0x2, message.subarray(0, 300), false),
      frame(0x0, new Uint8Array(0), false),
      frame(0x9, new Uint8Array([7, 8])),
      frame(0x0, message.subarray(300)),
      frame(0x2, encodeMessage(tellOf(2, "second"))),
      frame(0x8, new Uint8Array([0x03, 0xe8])),
    ]);
    await write(connection, consent(request));
    for (let at = 0; at < bytes.length; at += 97) {
      await write(connection, bytes.subarray(at, at + 97));
      if (at % 5 === 0) await new Promise((resolve) => setTimeout(resolve));
    }
    const frames = new DiallerFrames(connection);
    heard.resolve([await frames.ofKind(0xa), await frames.ofKind(0x8)]);
  });
  const link = await connect(server.address);
  const got: unknown[] = [];
  link.start((envelope) => got.push("body" in envelope ? envelope.body : undefined));
  await link.closed;
  assertEquals(got, [new Uint8Array(1_000).fill(5), "second"]);
  assertEquals(await heard.promise, [new Uint8Array([7, 8]), new Uint8Array([0x03, 0xe8])]);
  await link.released;
});

Deno.test("a server that reads late gets the answer to its last ping, and the newest message of a kind", async () => {
  const sent = Promise.withResolvers<void>();
  const pinged = Promise.withResolvers<void>();
  const received = Promise.withResolvers<Uint8Array>();
  await using server = new RawServer(async (connection, request) => {
    await write(connection, consent(request));
    await sent.promise;
    for (let i = 0; i < 1_000; i++) await write(connection, frame(0x9, numbered(0, i)));
    await write(connection, frame(0x2, new Uint8Array([1])));
    await pinged.promise;
    received.resolve(new Uint8Array(await new Response(connection.readable).arrayBuffer()));
  });
  const socket = await dialSocket({
    world: new DenoWorld({ logLevel: "off" }),
    url: new URL(server.address),
    side: undefined,
    ca: undefined,
    signal: new AbortController().signal,
  });
  socket.listen({ message: () => pinged.resolve(), closed: () => {} });
  // More than its window and the system's own buffers.
  const large = new Uint8Array(4 * WINDOW_BYTES);
  socket.send(large);
  sent.resolve();
  await pinged.promise;
  for (let i = 0; i < 2_000; i++) socket.sendNewest(numbered(5 + i % 2, i));
  await until(() => socket.bufferedAmount === 0);
  socket.close();
  const bytes = await received.promise;
  const frames: [number, Uint8Array][] = [];
  // The large frame has a head of 14 bytes, each of the others one of 6.
  for (let at = 14 + large.length; at < bytes.length; at += 6 + (bytes[at + 1]! & 0x7f)) {
    const key = bytes.subarray(at + 2, at + 6), length = bytes[at + 1]! & 0x7f;
    const payload = bytes.slice(at + 6, at + 6 + length).map((byte, i) => byte ^ key[i % 4]!);
    frames.push([bytes[at]! & 0x0f, payload]);
  }
  assertEquals(frames, [
    [0xa, numbered(0, 999)],
    [0x2, numbered(5, 1_998)],
    [0x2, numbered(6, 1_999)],
    [0x8, new Uint8Array([0x03, 0xe8])],
  ]);
  await socket.released;
});

function numbered(kind: number, number: number): Uint8Array {
  return new Uint8Array([kind, number >> 8, number & 0xff]);
}

Deno.test("a failed address is not dialled again for a time that grows up to a second", async () => {
  let dialled = 0;
  await using server = new RawServer((connection) => {
    dialled++;
    return write(connection, "HTTP/1.1 404 Not Found\r\n\r\n");
  });
  const world = new StillWorld({ logLevel: "off" });
  const connector = webSocketConnector({ world, connectTimeoutMs: 60_000 });
  const pausesMs: number[] = [];
  for (let pauseMs = 0; pausesMs.length < 8; pauseMs += 10, world.now += 10) {
    const before = dialled;
    await rejection(connector.connect(server.address, LOCAL), "unavailable");
    if (dialled === before) continue;
    pausesMs.push(pauseMs);
    pauseMs = 0;
  }
  assertEquals(pausesMs, [0, 50, 100, 200, 400, 800, 1000, 1000]);
});

Deno.test("an address that recovered is linked, and its failures are forgotten", async () => {
  const world = new StillWorld({ logLevel: "off" });
  const connector = webSocketConnector({ world, connectTimeoutMs: 60_000 });
  const listen = { hostname: "127.0.0.1", helloTimeoutMs: 60_000 };
  const options = { ...listen, world, local: () => LISTENER, onLink: () => {} };
  const first = serveWebSocket({ ...options, port: freePort() });
  await first.close();
  const failing = () => rejection(connector.connect(first.address, LOCAL), "unavailable");
  await failing();
  world.now += 50;
  await failing();
  world.now += 100;
  const second = serveWebSocket({ ...options, port: first.port });
  const link = await connector.connect(first.address, LOCAL);
  link.start(() => {});
  await second.close();
  await link.closed;
  await link.released;
  await failing();
  world.now += 50;
  const third = serveWebSocket({ ...options, port: first.port });
  const again = await connector.connect(first.address, LOCAL);
  again.close();
  await again.released;
  await third.close();
});

Deno.test("a busy thread does not treat its peers as dead", async () => {
  const world = new DenoWorld({ logLevel: "off" });
  const heartbeatMs = 20;
  const arrived = Promise.withResolvers<Link>();
  const server = serveWebSocket({
    ...{ world, hostname: "127.0.0.1", port: 0, helloTimeoutMs: 60_000, heartbeatMs },
    local: () => LISTENER,
    onLink: arrived.resolve,
  });
  const near = await webSocketConnector({ world, heartbeatMs, connectTimeoutMs: 60_000 }).connect(
    server.address,
    LOCAL,
  );
  const far = await arrived.promise;
  let ended = false;
  for (const link of [near, far]) {
    link.start(() => {});
    link.closed.then(() => ended = true);
  }
  for (let i = 0; i < 3; i++) {
    const until = performance.now() + 20 * heartbeatMs;
    while (performance.now() < until);
    await new Promise((resolve) => setTimeout(resolve, heartbeatMs));
  }
  assertEquals(ended, false);
  await server.close();
  await near.closed;
  await near.released;
});

Deno.test("a frozen process is detected, and closing its link leaves nothing behind", async () => {
  await using child = startChild("tests/transport/fixture_listener.ts", {
    flags: ["--allow-net=127.0.0.1"],
  });
  const [, address] = await child.line(/^listening (\S+)$/);
  const world = new DenoWorld({ logLevel: "off" });
  const link = await webSocketConnector({ world, heartbeatMs: 50, connectTimeoutMs: 60_000 })
    .connect(address!, LOCAL);
  link.start(() => {});
  child.kill("SIGSTOP");
  try {
    // More than it can accept: the goodbye waits behind it forever.
    for (let i = 1; i <= 20; i++) link.send(tellOf(i, new Uint8Array(1_000_000)));
    const { code, message } = await link.closed;
    assertEquals(code, "unavailable");
    assertStringIncludes(message, "said nothing");
    assertEquals(link.bufferedBytes, 0);
    await link.ready();
    await link.released;
  } finally {
    child.kill("SIGKILL");
  }
});

Deno.test("a slow receiver applies backpressure to the sender, also across processes", async () => {
  await using child = startChild("tests/transport/fixture_listener.ts", {
    flags: ["--allow-net=127.0.0.1"],
  });
  const [, address] = await child.line(/^listening (\S+)$/);
  const world = new DenoWorld({ logLevel: "off" });
  // However long the process is frozen, the link does not count as dead.
  const options = { world, heartbeatMs: PATIENCE_MS, connectTimeoutMs: 60_000 };
  await using system = new ActorSystem({
    node: "dialler",
    world,
    connector: webSocketConnector(options),
  });
  const ref = { node: address!, path: "/probe" };
  await system.ask<Mirror, "echo">(ref, "echo", 1, SOON);
  child.kill("SIGSTOP");
  const link = await webSocketConnector({ world, connectTimeoutMs: 200 })
    .connect(address!, LOCAL).catch((error) => error.code);
  assertEquals(link, "unavailable", "a frozen process accepts in the kernel only");
  const asks = Array.from(
    { length: 30 },
    (_, i) => system.ask<Mirror, "echo">(ref, "echo", new Uint8Array(1_000_000).fill(i), SOON),
  );
  assert(30_000_000 > WINDOW_BYTES);
  await new Promise((resolve) => setTimeout(resolve, 50));
  child.kill("SIGCONT");
  const answers = await Promise.all(asks);
  assertEquals(answers.map((answer) => (answer as Uint8Array)[0]), [...answers.keys()]);
});

Deno.test("dialling without network permission explains what to grant", async () => {
  const connector = webSocketConnector({ world: new DenoWorld(), connectTimeoutMs: 60_000 });
  const error = await rejection(connector.connect("ws://192.0.2.1:9", LOCAL), "permission_denied");
  assertStringIncludes(error.message, "--allow-net");
});

Deno.test("a token that no header can carry is refused where it is configured", () => {
  for (const token of ["", "two words", "line\n", "ü"]) {
    const error = assertThrows(() => asking(token), LeatError);
    assertEquals(error.code, "invalid_argument");
  }
});

Deno.test("a link that its listener closes at once says why, whoever starts it late", async () => {
  const why = "each node has a name of its own";
  await using listener = new Listener({
    onLink: (link) => link.close(new LeatError("permission_denied", why)),
  });
  for (let i = 0; i < 20; i++) {
    const link = await connect(listener.server.address);
    const reason = await link.closed;
    assertEquals([reason.code, reason.message], ["permission_denied", why]);
  }
});

Deno.test("a node that stops closes the connection that it is still opening", async () => {
  const asked = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  await using server = new RawServer(async (connection) => {
    asked.resolve();
    // It never answers the upgrade.
    while (await connection.read(new Uint8Array(1_000)) !== null);
    closed.resolve();
  });
  const world = new DenoWorld({ logLevel: "off" });
  // The time limit of the connection would close it, but far later.
  const connector = webSocketConnector({ world, connectTimeoutMs: 600_000 });
  const system = new ActorSystem({ ...LOCAL, world, connector });
  const ref: Ref<Probe> = { node: server.address, path: "/probe" };
  system.ask(ref, "echo", 1, SOON).catch(() => {});
  await asked.promise;
  await system.stop();
  await closed.promise;
});
