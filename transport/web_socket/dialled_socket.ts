/** Opens the TCP connection of a link and upgrades it to a WebSocket. */
import type { World } from "../../actors/runtime/world.ts";
import { closeConnection } from "./connection.ts";
import { FramedSocket } from "./framed_socket.ts";
import type { DiallerSide } from "./tokens/proof.ts";
import type { Socket } from "./socket.ts";
import { upgrade } from "./http/upgrade.ts";

interface DialOptions {
  readonly world: World;
  readonly url: URL;
  /** Proves that both sides know a token; omitted if there is none. */
  readonly side: DiallerSide | undefined;
  /** Certificates in PEM that are trusted in addition to the usual ones. */
  readonly ca: string | undefined;
  readonly signal: AbortSignal;
}

/** Connects and upgrades. @throws Errors of the platform, and of {@linkcode upgrade}. */
export async function dialSocket(options: DialOptions): Promise<Socket> {
  const { world, url, side, signal } = options;
  let conn = await connect(url, signal);
  const giveUp = () => closeConnection(conn);
  signal.addEventListener("abort", giveUp);
  try {
    if (url.protocol === "wss:") conn = await encrypt(conn, url, options.ca);
    // It may have been aborted between two steps, without a listener.
    signal.throwIfAborted();
    const randomState = world.random.fork(`WebSocket ${world.random.hex64()}`);
    const first = await upgrade(conn, url, side, randomState);
    signal.throwIfAborted();
    return new FramedSocket(world, conn, { masks: randomState, first });
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

/** URLs have brackets around IPv6 addresses. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "");
}
