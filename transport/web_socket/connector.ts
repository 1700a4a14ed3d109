/** The dialling side: connects to nodes whose names are URLs. */
import { LeatError, type LeatErrorCode } from "../../core/error.ts";
import { ANYONE, type Identity } from "../../actors/runtime/identity.ts";
import { type Connector, type Link, type NodeId, unknownNode } from "../../actors/runtime/link.ts";
import type { World } from "../../actors/runtime/world.ts";
import { LINK_LIMITS } from "../limits.ts";
import { readHello, RefusedByPeer, writeHello } from "../hello.ts";
import { WebSocketLink, type WebSocketLinkOptions } from "./link.ts";
import type { Peer } from "./peer.ts";
import { DiallerSide, type Target } from "./tokens/proof.ts";
import { anotherNode, tlsRemedy } from "./remedies.ts";
import type { ProvedToken } from "./tokens/token.ts";
import type { NearDialler } from "./slots.ts";
import type { Socket } from "./socket.ts";
import { NotProved, upgrade, UpgradeRefused } from "./http/upgrade.ts";
import { closeConnection } from "./connection.ts";
import { FramedSocket } from "./framed_socket.ts";

/** Time limit for reaching a node, from the first packet to its hello, in ms. */
const CONNECT_TIMEOUT_MS = 5_000;
/** How long a failed address is not dialled again, in ms. Doubles with each failure. */
const BACK_OFF_MIN_MS = 50;
const BACK_OFF_MAX_MS = 1_000;
/** Limit of the remembered failed addresses. Beyond it the oldest is forgotten. */
const FAILURES_MAX = 1_024;

/**
 * Codes of refusals that waiting does not change. Others are `unavailable`, so that who dials tries
 * again: a name or a place among the links may become free.
 */
const FINAL_REFUSALS: ReadonlySet<LeatErrorCode> = new Set([
  "unauthenticated",
  "permission_denied",
  "failed_precondition",
]);

/** The `reason` in the details of an error: the address of a service is that of another node. */
export const NO_DISPATCHER = "no_dispatcher";

/** Without a token, any node that answers is trusted. */
const NOTHING_PROVED: Credential = { target: "service", identity: ANYONE };

export interface WebSocketConnectorOptions extends WebSocketLinkOptions {
  readonly world: World;
  /**
   * Returns the token that both sides must prove to know, and the node's identity after that.
   * Throws a `LeatError` for a node that must not be dialled. Default: no proof.
   */
  readonly credentials?: (node: string) => Credential | undefined;
  /** Receives each opened link with the credential for its node; may close it. Default: nothing. */
  readonly onLink?: (link: Link, credential: Credential) => void;
  /** Certificates in PEM that are trusted in addition to the usual ones, for `wss:`. */
  readonly ca?: string;
  /** Shares slots with listeners of this host. Default: the connection carries all messages. */
  readonly near?: NearDialler | undefined;
  /** Default 5,000 ms. */
  readonly connectTimeoutMs?: number;
}

/** The proof for a node that is dialled. `identity` is the node's after the proof. */
export interface Credential extends ProvedToken {
  /** If omitted, neither side proves anything. */
  readonly token?: string;
  readonly target: Target;
}

interface Failure {
  readonly error: LeatError;
  readonly count: number;
  readonly untilMs: number;
}

/**
 * Dials nodes whose names are URLs: `ws://host:port` or `wss://host:port`. `connect` throws
 * `unavailable` with the cause and the remedy (for a short while after a failure: without dialling),
 * `unauthenticated`, `permission_denied`, `failed_precondition` for another protocol version and for
 * a node of another name (if it wants a proof), `not_found` if the name is no such URL.
 */
export function webSocketConnector(options: WebSocketConnectorOptions): Connector {
  const { world } = options;
  const failures = new Map<string, Failure>();
  const failed = (node: string, error: LeatError, count: number) => {
    const delayMs = Math.min(BACK_OFF_MAX_MS, BACK_OFF_MIN_MS * 2 ** Math.min(count, 20));
    failures.delete(node);
    failures.set(node, { error, count: count + 1, untilMs: world.nowMs() + delayMs });
    if (failures.size > FAILURES_MAX) failures.delete(failures.keys().next().value!);
    return error;
  };
  return {
    async connect(node, local, signal) {
      const url = URL.parse(node);
      // The URL parser drops characters such as line breaks: the proof would cover another text.
      const isClean = /^[!-~]{1,2048}$/.test(node);
      if (url === null || !isClean || (url.protocol !== "ws:" && url.protocol !== "wss:")) {
        throw unknownNode(
          `"${node}" cannot be dialled: it is no ws:// or wss:// address, and has no link to this node`,
        );
      }
      const credential = options.credentials?.(node) ?? NOTHING_PROVED;
      const failure = failures.get(node);
      if (failure !== undefined && world.nowMs() < failure.untilMs) throw failure.error;
      try {
        const link = await dial(node, url, local, credential, options, signal);
        failures.delete(node);
        options.onLink?.(link, credential);
        return link;
      } catch (error) {
        throw failed(node, LeatError.from(error, "unavailable"), failure?.count ?? 0);
      }
    },
  };
}

/** Opens a connection and performs the handshake. */
async function dial(
  node: string,
  url: URL,
  local: NodeId,
  { token, target, identity }: Credential,
  options: WebSocketConnectorOptions,
  stopping: AbortSignal | undefined,
): Promise<WebSocketLink> {
  const { world, ca, connectTimeoutMs = CONNECT_TIMEOUT_MS } = options;
  const abort = new AbortController();
  const giveUp = () => abort.abort();
  const timer = world.timer(connectTimeoutMs, giveUp);
  stopping?.addEventListener("abort", giveUp);
  const side = token === undefined ? undefined : new DiallerSide(token, target, node);
  try {
    const socket = await dialSocket({ world, url, side, ca, signal: abort.signal });
    return await introduce(node, socket, local, identity, options, abort.signal);
  } catch (error) {
    if (abort.signal.aborted) throw unreachable(node, `no answer within ${connectTimeoutMs} ms`);
    throw refused(node, target, error);
  } finally {
    timer.cancel();
    stopping?.removeEventListener("abort", giveUp);
  }
}

async function introduce(
  node: string,
  socket: Socket,
  local: NodeId,
  identity: Identity,
  options: WebSocketConnectorOptions,
  signal: AbortSignal,
): Promise<WebSocketLink> {
  const { messageBytesMax } = { ...LINK_LIMITS, ...options.limits };
  const linked = Promise.withResolvers<WebSocketLink>();
  signal.addEventListener("abort", () => linked.reject(signal.reason), { once: true });
  socket.listen({
    message(data) {
      try {
        const hello = readHello(data, "listener");
        const peer: Peer = {
          // This node keeps the dialled name, even if the other node has another name.
          remote: { node, incarnation: hello.incarnation },
          ownName: hello.node,
          identity,
          messageBytesMax: hello.messageBytesMax,
          slots: hello.near === undefined ? undefined : options.near?.create(hello.near),
        };
        linked.resolve(new WebSocketLink(options.world, socket, peer, options));
      } catch (error) {
        linked.reject(error);
      }
    },
    broken: (error) => linked.reject(error),
    closed: (why) => linked.reject(new Error(`${why} before its hello`)),
  });
  socket.send(writeHello({ ...local, role: "dialler", messageBytesMax }));
  try {
    return await linked.promise;
  } catch (error) {
    socket.close();
    throw error;
  }
}

function refused(node: string, target: Target, cause: unknown): LeatError {
  if (cause instanceof UpgradeRefused) return notUpgraded(node, target, cause);
  if (cause instanceof NotProved) {
    return new LeatError(
      "unauthenticated",
      `${node} is not trusted: ${cause.message}; start it with the same token, or give none here ` +
        "if it has none (token, --token-file)",
      { cause },
    );
  }
  const { code, message } = LeatError.from(cause, "unavailable");
  if (cause instanceof RefusedByPeer) {
    const shownCode = FINAL_REFUSALS.has(code) ? code : "unavailable";
    return new LeatError(shownCode, `${node} refuses this node: ${message}`, { cause });
  }
  if (code === "permission_denied") {
    return new LeatError(code, `Cannot reach ${node}: ${message}; grant --allow-net for it`, {
      cause,
    });
  }
  if (code === "failed_precondition") {
    return new LeatError(code, `Cannot link to ${node}: ${message}`, { cause });
  }
  return unreachable(node, message, cause);
}

function notUpgraded(node: string, target: Target, cause: UpgradeRefused): LeatError {
  switch (cause.status) {
    case 401:
      return new LeatError(
        "unauthenticated",
        `${node} refuses this node: its token is missing or wrong; give the server's (token, --token-file)`,
        { cause },
      );
    case 403:
      return new LeatError("permission_denied", `${node} refuses this node (HTTP 403)`, { cause });
    case 421:
      if (target === "node") return anotherNode(node);
      return new LeatError(
        "failed_precondition",
        `${node} is a node of Leat, but no dispatcher: a worker may listen there; give the ` +
          "dispatcher's address",
        { cause, details: { reason: NO_DISPATCHER } },
      );
    case 503:
      return unreachable(node, "it has too many connections", cause);
    default:
      return unreachable(node, `no node of Leat listens there (HTTP ${cause.status})`, cause);
  }
}

function unreachable(node: string, why: string, cause?: unknown): LeatError {
  const remedy = tlsRemedy(node, why) ?? "check that it runs, its address, and the network between";
  const options = cause === undefined ? {} : { cause };
  return new LeatError("unavailable", `Cannot reach ${node}: ${why}; ${remedy}`, options);
}

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
    // `signal` may have aborted between two steps, when no step listened to it.
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
