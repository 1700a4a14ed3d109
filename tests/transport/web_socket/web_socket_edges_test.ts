/** Failures that only a WebSocket has: strangers, silent peers, servers that come back. */

import type { Identity } from "../../../actors/runtime/identity.ts";
import { isClosedThere } from "../../../actors/runtime/link.ts";
import { LeatError } from "../../../core/error.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { decodeMessage, encodeMessage } from "../../../transport/codec.ts";
import { byeReason, HELLO_BYTES_MAX, writeHello } from "../../../transport/hello.ts";
import { webSocketConnector, type WebSocketServerOptions } from "../../../transport/web_socket.ts";
import { FRAME_BYTES_MAX } from "../../../transport/web_socket/frames.ts";
import { serveWebSocket } from "../../../transport/web_socket/server.ts";
import { type Probe, probe, rejection, SOON } from "../../actors/runtime/nodes.ts";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "../../assert.ts";
import { soon } from "../../cluster/lib.ts";
import { startChild } from "../../lib/child.ts";
import { CLOSED_PORT } from "../../lib/closed_port.ts";
import { freePort } from "../../lib/free_port.ts";
import { StillWorld } from "../../lib/still_world.ts";
import { until } from "../../lib/until.ts";
import { TcpProxy } from "../tcp_proxy.ts";
import { asking, knowing } from "../tokens.ts";
import {
  assertServes,
  certificates,
  dialler,
  FORGED,
  Listener,
  LOCAL,
  stranger,
  tellOf,
  TOKEN,
} from "./strangers.ts";
import { generateKeyPairSync } from "node:crypto";

Deno.test("a missing or wrong token gets 401 and no socket; the right one is served", async () => {
  await using listener = new Listener(asking(TOKEN));
  const { address, port } = listener.server;
  for (const token of [undefined, "wrong", `${TOKEN}x`]) {
    const world = new DenoWorld();
    const connecting = webSocketConnector({ world, ...knowing(token), connectTimeoutMs: 60_000 })
      .connect(address, LOCAL);
    const error = await rejection(connecting, "unauthenticated");
    assertStringIncludes(error.message, address);
  }
  assertEquals((await stranger(address, () => {})).opened, false);
  const response = await fetch(`http://127.0.0.1:${port}/`);
  await response.body?.cancel();
  assertEquals(response.status, 426, "there are no pages");
  assertEquals(listener.links, []);
  await assertServes(address, { token: TOKEN });
});

Deno.test("a web page's request is refused even without a token", async () => {
  await using listener = new Listener();
  const response = await fetch(`http://127.0.0.1:${listener.server.port}/`, {
    headers: { origin: "https://example.org" },
  });
  await response.body?.cancel();
  assertEquals(response.status, 403);
});

Deno.test("a page that takes longer than a hello may is sent, also without tokens", async () => {
  const world = new DenoWorld();
  const helloTimeoutMs = 20;
  const body = new TextEncoder().encode("slow");
  const server = serveWebSocket({
    ...{ world, hostname: "127.0.0.1", port: 0, helloTimeoutMs, local: () => LOCAL, onLink() {} },
    pages: {
      ...{ home: "/", open: "/healthz", roles: [] },
      answer: () =>
        // Begun after the timer of the hello, and longer: it ends later, however slow this machine is.
        new Promise((resolve) =>
          world.timer(2 * helloTimeoutMs, () => resolve({ status: 200, headers: {}, body }))
        ),
    },
  });
  for (const path of ["/state", "/healthz"]) {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`);
    assertEquals([response.status, await response.text()], [200, "slow"]);
  }
  await server.close();
});

Deno.test("garbage, text, an oversize or missing hello end only that connection", async () => {
  await using listener = new Listener({ helloTimeoutMs: 500 });
  const { address } = listener.server;
  const says: ((socket: WebSocket) => void)[] = [
    (socket) => socket.send(new Uint8Array([1, 2, 3])),
    (socket) => socket.send(new Uint8Array(0)),
    (socket) => socket.send("hello"),
    (socket) => socket.send(new Uint8Array(1_000_000)),
    (socket) => socket.send(encodeMessage({ kind: "tell", method: "note" })),
    (socket) => socket.send(encodeMessage(null)),
    () => {},
  ];
  await Promise.all(says.map((say) => stranger(address, say)));
  assertEquals(listener.links, []);
  await assertServes(address);
});

Deno.test("a listener says goodbye to a hello or a frame over its limit", async () => {
  await using listener = new Listener();
  const hello = { role: "dialler", node: "stranger", incarnation: "00" } as const;
  const frames: Uint8Array<ArrayBuffer>[][] = [
    [new Uint8Array(HELLO_BYTES_MAX + 1)],
    [writeHello({ ...hello, messageBytesMax: 100_000 }), new Uint8Array(FRAME_BYTES_MAX + 1)],
  ];
  for (const sent of frames) {
    const { messages } = await stranger(listener.server.address, (socket) => {
      for (const frame of sent) socket.send(frame);
    });
    assertEquals(byeReason(messages.at(-1))?.code, "invalid_argument");
  }
});

Deno.test("a listener's refusal keeps its code if waiting cannot help, and has one remedy", async () => {
  const identity: Identity = { name: "two", role: "worker" };
  const named = { token: TOKEN, identity };
  // The first look is that of the proof: the token is withdrawn before the hello.
  let finds = 0;
  const withdrawn = { find: () => ++finds > 1 ? undefined : named };
  const cases: [Partial<WebSocketServerOptions>, string, string][] = [
    [{ tokens: withdrawn }, "unauthenticated", 'The token of "two" was withdrawn'],
    [{ tokens: { find: () => named }, ownerOf: () => "one" }, "unavailable", "has to wait until"],
  ];
  for (const [options, code, why] of cases) {
    await using listener = new Listener({ ...asking(TOKEN), ...options });
    const { address } = listener.server;
    const world = new DenoWorld({ logLevel: "off" });
    const connector = webSocketConnector({ world, ...knowing(TOKEN), connectTimeoutMs: 60_000 });
    const node = { ...LOCAL, node: "ws://10.0.0.6:5051" };
    const { message, code: got } = LeatError.from(
      await connector.connect(address, node).catch((error) => error),
    );
    assertEquals(got, code);
    assertStringIncludes(message, `${address} refuses this node: `);
    assertStringIncludes(message, why);
    assert(!message.includes("check that it runs"), message);
  }
});

Deno.test("an invalid message after a valid hello closes only that link", async () => {
  await using listener = new Listener();
  const { address } = listener.server;
  const hello = encodeMessage({
    kind: "hello",
    version: 1,
    role: "dialler",
    node: "stranger",
    incarnation: "00",
    messageBytesMax: 100_000,
  });
  const fragment = new Uint8Array(64);
  fragment[0] = 2;
  const frames: (Uint8Array<ArrayBuffer> | string)[] = [
    new Uint8Array([0x77, 1, 2]),
    new Uint8Array([0xce, 0xff, 0xff, 0xff, 0xff]),
    new Uint8Array(0),
    fragment.fill(0xff, 1),
    "text",
    encodeMessage({ kind: "ask", source: 1 }),
    // In the name of another node, and of an actor of another incarnation.
    encodeMessage({ ...tellOf("forged"), source: { ...FORGED, node: "dialler" } }),
    encodeMessage({ ...tellOf("forged"), source: { ...FORGED, incarnation: "01-1" } }),
  ];
  for (const frame of frames) {
    const count = listener.links.length;
    await stranger(address, (socket) => {
      socket.send(hello);
      socket.send(frame);
    });
    assertEquals(listener.links.length, count + 1);
    await listener.links[count]!.closed;
  }
  await assertServes(address);
});

Deno.test("a node that is dialled by another name than its own answers over the same link", async () => {
  await using listener = new Listener();
  await using system = dialler();
  const { address } = listener.server;
  const ref = system.spawn<Probe>({ name: "probe", create: probe });
  // Opens the link; "listener" calls itself by another name than the dialled address.
  await system.ask<Probe, "echo">({ node: address, path: "/probe" }, "echo", 1, SOON);
  const answer = await listener.system.ask<Probe, "echo">(ref, "echo", 2, SOON);
  assertEquals(answer.value, 2);
});

Deno.test("another version of the protocol is answered with an error and closed", async () => {
  await using listener = new Listener();
  const { messages } = await stranger(listener.server.address, (socket) => {
    const other = { kind: "hello", version: 99, role: "dialler", node: "x", incarnation: "0" };
    socket.send(encodeMessage({ ...other, messageBytesMax: 100_000 }));
  });
  const [bye] = messages as { kind: string; error: { code: string; message: string } }[];
  assertEquals([bye?.kind, bye?.error.code], ["bye", "failed_precondition"]);
  assertStringIncludes(bye!.error.message, "99");
  assertEquals(listener.links, []);
});

Deno.test("a server that accepts and never answers is `unavailable` at the deadline", async () => {
  const silent = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const accepted: Deno.Conn[] = [];
  const accepting = (async () => {
    for await (const connection of silent) accepted.push(connection);
  })();
  const address = `ws://127.0.0.1:${silent.addr.port}`;
  const connector = webSocketConnector({ world: new DenoWorld(), connectTimeoutMs: 100 });
  const error = await rejection(connector.connect(address, LOCAL), "unavailable");
  assertStringIncludes(error.message, address);
  assertStringIncludes(error.message, "100 ms");
  silent.close();
  for (const connection of accepted) connection.close();
  await accepting;
});

Deno.test("an address without a listener is `unavailable`, with address and cause", async () => {
  const address = `ws://127.0.0.1:${CLOSED_PORT}`;
  const connector = webSocketConnector({ world: new DenoWorld(), connectTimeoutMs: 60_000 });
  const error = await rejection(connector.connect(address, LOCAL), "unavailable");
  assertStringIncludes(error.message, `Cannot reach ${address}`);
  assertStringIncludes(error.message, "refused");
  await rejection(connector.connect("not-an-address", LOCAL), "not_found");
});

Deno.test("a link with a broken wire closes on both sides, by the heartbeat", async () => {
  const heartbeatMs = 20;
  await using listener = new Listener({ heartbeatMs });
  await using proxy = new TcpProxy(listener.server.port);
  const connector = webSocketConnector({
    world: new DenoWorld(),
    heartbeatMs,
    connectTimeoutMs: 60_000,
  });
  const near = await connector.connect(`ws://127.0.0.1:${proxy.port}`, LOCAL);
  near.start(() => {});
  proxy.hold();
  const ends = await Promise.all([near.closed, listener.links[0]!.closed]);
  assertEquals(ends.map(({ code }) => code), ["unavailable", "unavailable"]);
  for (const end of ends) {
    assertStringIncludes(end.message, "said nothing");
    assertEquals(isClosedThere(end), false, end.message);
  }
});

Deno.test("a cut link closes at its other end, also under TLS", async () => {
  const [cert, key, ca] = await certificates();
  for (const tls of [{}, { cert, key }]) {
    await using listener = new Listener(tls);
    await using proxy = new TcpProxy(listener.server.port);
    const connector = webSocketConnector({ world: new DenoWorld(), ca, connectTimeoutMs: 60_000 });
    const scheme = "cert" in tls ? "wss" : "ws";
    const near = await connector.connect(`${scheme}://127.0.0.1:${proxy.port}`, LOCAL);
    near.start(() => {});
    proxy.cut();
    const ends = await Promise.all([near.closed, listener.links[0]!.closed]);
    for (const end of ends) assertEquals(isClosedThere(end), true, end.message);
  }
});

Deno.test("the links of a killed process close at the other end, also with unread bytes", async () => {
  await using listener = new Listener();
  for (const unread of [0, 4_000_000]) {
    await using child = startChild("tests/transport/fixture_dialler.ts", {
      args: [listener.server.address],
      flags: ["--allow-net=127.0.0.1"],
    });
    await child.line(/^linked$/);
    const link = listener.links.at(-1)!;
    child.kill("SIGSTOP");
    if (unread > 0) link.send(tellOf(new Uint8Array(unread)));
    child.kill("SIGKILL");
    const end = await link.closed;
    assertEquals(isClosedThere(end), true, end.message);
  }
});

Deno.test("a node and its server stop although the other side of a link does not answer", async () => {
  const listener = new Listener();
  await using proxy = new TcpProxy(listener.server.port);
  const connector = webSocketConnector({
    world: new DenoWorld({ logLevel: "off" }),
    connectTimeoutMs: 60_000,
  });
  const near = await connector.connect(`ws://127.0.0.1:${proxy.port}`, LOCAL);
  near.start(() => {});
  proxy.hold();
  await soon("the node's end", listener[Symbol.asyncDispose]());
  assertEquals((await listener.links[0]!.closed).code, "cancelled");
  near.close();
  await near.released;
});

/** A world whose macrotasks wait until the test runs them. */
class HeldWorld extends StillWorld {
  readonly held: (() => void)[] = [];

  override macrotask(callback: () => void): void {
    this.held.push(callback);
  }
}

Deno.test("WebSocketServer.close refuses the hello that comes while it waits", async () => {
  const world = new HeldWorld({ logLevel: "off" });
  const listener = new Listener({ world });
  const { address } = listener.server;
  // After so many the server leaves its thread to others before it accepts more.
  const sockets = Array.from({ length: 4 }, () => new WebSocket(address));
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.onopen = resolve)));
  const closing = listener.server.close();
  const socket = sockets[0]!;
  socket.binaryType = "arraybuffer";
  const answer = new Promise((resolve) => {
    socket.onmessage = ({ data }) => resolve(byeReason(decodeMessage(new Uint8Array(data))));
  });
  const closed = sockets.map((socket) => new Promise((resolve) => socket.onclose = resolve));
  socket.send(
    writeHello({ role: "dialler", node: "late", incarnation: "00", messageBytesMax: 100_000 }),
  );
  assertEquals((await answer as LeatError).code, "unavailable");
  assertEquals(listener.links, []);
  for (const callback of world.held.splice(0)) callback();
  await Promise.all([closing, ...closed]);
  await listener.system.stop();
});

Deno.test("an idle link stays open: the heartbeat answers", async () => {
  const heartbeatMs = 10;
  await using listener = new Listener({ heartbeatMs });
  const connector = webSocketConnector({
    world: new DenoWorld(),
    heartbeatMs,
    connectTimeoutMs: 60_000,
  });
  const near = await connector.connect(listener.server.address, LOCAL);
  near.start(() => {});
  await new Promise((resolve) => setTimeout(resolve, 30 * heartbeatMs));
  assert(near.send(tellOf(1)));
  near.close();
  await listener.links[0]!.closed;
});

Deno.test("a patient ask survives a server's restart on the same port", async () => {
  // The system gives it to no other test meanwhile.
  const first = new Listener({ port: freePort() });
  const { address, port } = first.server;
  await using system = dialler();
  const ref = { node: address, path: "/probe" };
  await system.ask<Probe, "echo">(ref, "echo", 1, SOON);
  const waiting = rejection(system.ask<Probe, "wait">(ref, "wait", null, SOON), "unavailable");
  await first[Symbol.asyncDispose]();
  await waiting;
  const patient = system.ask<Probe, "echo">(ref, "echo", 2, { ...SOON, attemptMs: 200 });
  await using _second = await until(() => listenerOn(port));
  assertEquals((await patient).value, 2);
});

/** Undefined while another program tries whether the port is free. */
function listenerOn(port: number): Listener | undefined {
  try {
    return new Listener({ port });
  } catch (error) {
    assertEquals(LeatError.from(error).code, "already_exists");
    return undefined;
  }
}

Deno.test("a port in use, a public interface without a token, half a certificate: refused clearly", async () => {
  await using listener = new Listener();
  const { port } = listener.server;
  const serve = (options: Partial<WebSocketServerOptions>) => () =>
    serveWebSocket({
      world: new DenoWorld(),
      hostname: "127.0.0.1",
      port: 0,
      local: () => LOCAL,
      onLink: () => {},
      ...options,
    });
  const taken = assertThrows(serve({ port }), LeatError, String(port));
  assertEquals(taken.code, "already_exists");
  assertStringIncludes(taken.message, "another port");
  const open = assertThrows(serve({ hostname: "0.0.0.0" }), LeatError, "--insecure");
  assertEquals(open.code, "failed_precondition");
  const half = assertThrows(serve({ cert: "x" }), LeatError, "key");
  assertEquals(half.code, "invalid_argument");
  await (serve({ hostname: "0.0.0.0", insecure: true })()).close();
});

Deno.test("a mismatched or unreadable certificate and key: refused with the remedy", async () => {
  const [cert, key, ca] = await certificates();
  const pem = { type: "pkcs8", format: "pem" } as const;
  const options = {
    namedCurve: "P-256",
    publicKeyEncoding: { type: "spki", format: "pem" },
  } as const;
  const { privateKey: other } = generateKeyPairSync("ec", { ...options, privateKeyEncoding: pem });
  const { privateKey: locked } = generateKeyPairSync("ec", {
    ...options,
    privateKeyEncoding: { ...pem, cipher: "aes-256-cbc", passphrase: "secret" },
  });
  const junk = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  const cases: [cert: string, key: string, remedy: string][] = [
    [cert, other, "the key belongs to another certificate"],
    [ca, key, "this server's own certificate comes first"],
    [cert, locked, "without a passphrase"],
    [key, cert, "a certificate chain in PEM"],
    [junk, key, "the certificate is damaged"],
  ];
  for (const [cert, key, remedy] of cases) {
    const { code, message } = assertThrows(
      () => new Listener({ cert, key }),
      LeatError,
    ) as LeatError;
    assertEquals(code, "invalid_argument");
    assertStringIncludes(message, remedy);
    assert(!/listen on an address|PRIVATE KEY/.test(message), message);
  }
});

Deno.test("wss: serves clients that trust its authority, and is `unavailable` to others, with the reason", async () => {
  const [cert, key, ca] = await certificates();
  for (const isService of [false, true]) {
    await using listener = new Listener({ cert, key, isService, ...asking(TOKEN) });
    const { address } = listener.server;
    assert(address.startsWith("wss://"));
    const world = new DenoWorld();
    const trusting = webSocketConnector({ world, ca, ...knowing(TOKEN), connectTimeoutMs: 60_000 });
    const link = await trusting.connect(address, LOCAL);
    link.close();
    await listener.links[0]!.closed;
    const doubting = webSocketConnector({ world, ...knowing(TOKEN), connectTimeoutMs: 60_000 });
    const error = await rejection(doubting.connect(address, LOCAL), "unavailable");
    assertStringIncludes(error.message, "--ca");
  }
});

Deno.test("a mismatch of TLS between two sides is reported with the right address", async () => {
  const [cert, key] = await certificates();
  await using encrypted = new Listener({ cert, key });
  await using service = new Listener({ cert, key, isService: true });
  await using plain = new Listener();
  const connector = webSocketConnector({ world: new DenoWorld(), connectTimeoutMs: 60_000 });
  const refusalOf = async (address: string) =>
    (await rejection(connector.connect(address, LOCAL), "unavailable")).message;
  for (const { server } of [encrypted, service]) {
    const toTls = await refusalOf(server.address.replace("wss:", "ws:"));
    assertStringIncludes(toTls, "the server there accepts only TLS");
    assertStringIncludes(toTls, "its address begins with wss://");
  }
  const toPlain = await refusalOf(plain.server.address.replace("ws:", "wss:"));
  assertStringIncludes(toPlain, "its address begins with ws://");
});

Deno.test("a process ends by itself once its nodes and servers are closed", async () => {
  await using child = startChild("tests/transport/fixture_exit.ts", {
    flags: ["--allow-net=127.0.0.1", "--allow-env", "--allow-read", "--allow-sys"],
  });
  await child.line(/^closed$/);
  assertEquals((await child.status).code, 0);
});
