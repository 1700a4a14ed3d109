/**
 * Opens the connection of a link, and has it become a WebSocket.
 *
 * @module
 */
import type { World } from "../../actors/runtime/world.ts";
import { closeConnection } from "./close_connection.ts";
import { FramedSocket } from "./framed_socket.ts";
import type { DiallerSide } from "./proof.ts";
import type { Socket } from "./socket.ts";
import { upgrade } from "./upgrade.ts";

/** Where to, and with what. */
export interface DialOptions {
  readonly world: World;
  readonly url: URL;
  /** Proves that both sides know a token; left out, there is none. */
  readonly side: DiallerSide | undefined;
  /** Certificates in PEM that are trusted beside the usual ones. */
  readonly ca: string | undefined;
  /** Gives up. */
  readonly signal: AbortSignal;
}

/**
 * Connects and upgrades.
 *
 * @throws Whatever the platform says, and what {@linkcode upgrade} throws.
 */
export async function dialSocket(options: DialOptions): Promise<Socket> {
  const { world, url, side, signal } = options;
  let conn = await connect(url, signal);
  const giveUp = () => closeConnection(conn);
  signal.addEventListener("abort", giveUp);
  try {
    if (url.protocol === "wss:") conn = await encrypt(conn, url, options.ca);
    // It may have been given up between two steps, when nobody listened.
    signal.throwIfAborted();
    const luck = world.random.fork(`WebSocket ${world.random.hex64()}`);
    const first = await upgrade(conn, url, side, luck);
    signal.throwIfAborted();
    return new FramedSocket(world, conn, { masks: luck, first });
  } catch (error) {
    closeConnection(conn);
    throw error;
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
}

async function connect(url: URL, signal: AbortSignal): Promise<Deno.TcpConn | Deno.TlsConn> {
  const port = Number(url.port) || (url.protocol === "wss:" ? 443 : 80);
  const conn = await Deno.connect({ hostname: hostOf(url), port, signal });
  conn.setNoDelay(true);
  return conn;
}

async function encrypt(
  conn: Deno.TcpConn | Deno.TlsConn,
  url: URL,
  ca: string | undefined,
): Promise<Deno.TlsConn> {
  const caCerts = ca === undefined ? [] : [ca];
  const options = { hostname: hostOf(url), caCerts, alpnProtocols: ["http/1.1"] };
  return await Deno.startTls(conn as Deno.TcpConn, options);
}

/** A URL has IPv6 addresses in brackets. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "");
}
