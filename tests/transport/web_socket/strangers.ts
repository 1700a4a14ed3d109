/** Listeners, and strangers that dial them, for tests of sockets. */
import type { Envelope } from "../../../actors/runtime/envelope.ts";
import type { Link, NodeId } from "../../../actors/runtime/link.ts";
import { ActorSystem } from "../../../actors/runtime/system.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { decodeMessage } from "../../../transport/codec.ts";
import { connectorByScheme } from "../../../transport/connectors.ts";
import {
  webSocketConnector,
  type WebSocketServer,
  type WebSocketServerOptions,
} from "../../../transport/web_socket.ts";
import { serveWebSocket } from "../../../transport/web_socket/server.ts";
import { type Probe, probe, SOON } from "../../actors/runtime/nodes.ts";
import { assertEquals } from "../../assert.ts";
import { knowing } from "../tokens.ts";

export const LOCAL: NodeId = { node: "dialler", incarnation: "00000000000000cc" };

export const TOKEN = "correct-horse";

/** A node that listens, with a probe on it. */
export class Listener implements AsyncDisposable {
  readonly system: ActorSystem;
  readonly server: WebSocketServer;
  readonly links: Link[] = [];

  constructor(options: Partial<WebSocketServerOptions> = {}) {
    const world = new DenoWorld({ logLevel: "off" });
    this.system = new ActorSystem({ node: "listener", world });
    this.system.spawn<Probe>({ name: "probe", create: probe });
    this.server = serveWebSocket({
      world,
      hostname: "127.0.0.1",
      port: 0,
      helloTimeoutMs: 60_000,
      local: () => this.system.id,
      onLink: (link) => {
        this.links.push(link);
        this.system.attach(link);
      },
      ...options,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.system.stop();
    await this.server.close();
  }
}

/** A certificate, its key, and the authority's certificate. */
export async function certificates(): Promise<[string, string, string]> {
  const pem = (name: string) => Deno.readTextFile(new URL(`../tls/${name}`, import.meta.url));
  return await Promise.all([pem("server.pem"), pem("server.key"), pem("ca.pem")]);
}

/** An actor of a node that calls itself "stranger". */
export const FORGED = { node: "stranger", path: "/x", incarnation: "00-1" };

/** A message for the probe. */
export function tellOf(body: unknown): Envelope {
  return {
    kind: "tell",
    source: { node: "dialler", path: "/x", incarnation: `${LOCAL.incarnation}-1` },
    target: { node: "listener", path: "/probe" },
    number: 1,
    method: "note",
    body,
  };
}

/** A node that dials. */
export function dialler({ token }: { token?: string } = {}): ActorSystem {
  const world = new DenoWorld({ logLevel: "off" });
  const connector = webSocketConnector({ world, ...knowing(token), connectTimeoutMs: 60_000 });
  return new ActorSystem({
    node: "dialler",
    world,
    connector: connectorByScheme({ ws: connector, wss: connector }),
  });
}

/** A node with the right token is still served. */
export async function assertServes(
  address: string,
  options: { token?: string } = {},
): Promise<void> {
  await using system = dialler(options);
  const ref = { node: address, path: "/probe" } as { node: string; path: string };
  const answer = await system.ask<Probe, "echo">(ref, "echo", 1, { ...SOON, attemptMs: 5_000 });
  assertEquals(answer.value, 1);
}

/** A raw connection: what it received, and how it ended. */
export async function stranger(
  address: string,
  say: (socket: WebSocket) => void,
): Promise<{ messages: unknown[]; opened: boolean }> {
  const socket = new WebSocket(address);
  socket.binaryType = "arraybuffer";
  const messages: unknown[] = [];
  let opened = false;
  const closed = new Promise<void>((resolve) => socket.onclose = () => resolve());
  socket.onmessage = ({ data }) => messages.push(decodeMessage(new Uint8Array(data)));
  socket.onopen = () => {
    opened = true;
    say(socket);
  };
  await closed;
  return { messages, opened };
}
