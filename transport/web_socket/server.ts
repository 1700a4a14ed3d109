/**
 * The listening side: who may connect, and what becomes of a connection.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { ANYONE, TOKEN_HOLDER } from "../../actors/runtime/identity.ts";
import type { Link, NodeId } from "../../actors/runtime/link.ts";
import type { World } from "../../actors/runtime/world.ts";
import { LINK_LIMITS } from "../limits.ts";
import { HELLO_BYTES_MAX, readHello, writeBye, writeHello } from "./hello.ts";
import { type Arrival, HttpListener, refusal } from "./http_listener.ts";
import type { RequestHead } from "./http_request.ts";
import { type Peer, WebSocketLink, type WebSocketLinkOptions } from "./link.ts";
import type { Socket } from "./socket.ts";
import { carriesToken, checkToken, isSecret } from "./token.ts";

/** How long a connection may take to introduce itself. */
const HELLO_TIMEOUT_MS = 5_000;

/** How to listen. */
export interface WebSocketServerOptions extends WebSocketLinkOptions {
  readonly world: World;
  /** The interface to listen on, such as `127.0.0.1` or `0.0.0.0`. */
  readonly hostname: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** The certificate chain in PEM; with `key`, connections are encrypted (`wss:`). */
  readonly cert?: string;
  /** The private key in PEM. */
  readonly key?: string;
  /** Who does not present it gets 401 and no socket. */
  readonly token?: string;
  /** Listens beyond this machine without a token. Default false. */
  readonly insecure?: boolean;
  /** Who this node is; asked for each connection. */
  readonly local: () => NodeId;
  /** Gets every link; usually `system.attach`. */
  readonly onLink: (link: Link) => void;
  /** Pages for people and their tools beside the sockets; left out, there are none. */
  readonly pages?: Pages;
  /** How long a connection may take to introduce itself. Default 5,000 ms. */
  readonly helloTimeoutMs?: number;
  /**
   * Whether this process may open so many more files. Connections are refused while it may not, so that
   * those who are connected have some. Default: it may.
   */
  readonly hasSpareFiles?: (count: number) => boolean;
}

/** What a server shows to those who ask for no socket. */
export interface Pages {
  /** Where `?token=` counts beside the header: what people open in a browser, which sends no header. */
  readonly home: string;
  /** What strangers see too: probes of whoever supervises this process have no token to show. */
  readonly open: string;
  /** The page of a path; undefined when there is none. Whoever is answered has shown the token, but for `open`. */
  answer(path: string): Promise<Response> | undefined;
}

/** A server that listens. */
export interface WebSocketServer {
  /** `ws://host:port`, or `wss:`, with the real port. */
  readonly address: string;
  readonly port: number;
  /** Stops listening and closes all links that came in, within a second. */
  close(): Promise<void>;
}

/**
 * Listens for nodes that dial in.
 *
 * @throws LeatError `failed_precondition` when it would listen beyond this machine without a token
 * and was not told to; `invalid_argument` for a certificate without its key or the reverse, or one
 * that cannot be read; `already_exists` when the port is in use; `permission_denied` when this
 * process may not listen there; `unavailable` when the host has no such interface.
 *
 * @example
 * ```ts ignore
 * const server = serveWebSocket({
 *   world,
 *   hostname: "127.0.0.1",
 *   port: 0,
 *   local: () => system.id,
 *   onLink: (link) => system.attach(link),
 * });
 * console.log(server.address);
 * ```
 */
export function serveWebSocket(options: WebSocketServerOptions): WebSocketServer {
  return new Server(options);
}

class Server implements WebSocketServer {
  readonly address: string;
  readonly port: number;
  readonly #options: WebSocketServerOptions;
  readonly #listener: HttpListener;
  readonly #links = new Set<Link>();

  constructor(options: WebSocketServerOptions) {
    checkOptions(options);
    this.#options = options;
    this.#listener = this.#listen();
    const { hostname } = options;
    const scheme = options.cert === undefined ? "ws" : "wss";
    this.port = this.#listener.port;
    this.address = `${scheme}://${
      hostname.includes(":") ? `[${hostname}]` : hostname
    }:${this.port}`;
  }

  async close(): Promise<void> {
    const reason = new LeatError("unavailable", `${this.address} has stopped listening`);
    for (const link of [...this.#links]) link.close(reason);
    await this.#listener.close();
  }

  #listen(): HttpListener {
    const { world, hostname, port, cert, key, helloTimeoutMs, hasSpareFiles } = this.#options;
    try {
      return new HttpListener({
        world,
        hostname,
        port,
        cert,
        key,
        helloTimeoutMs: helloTimeoutMs ?? HELLO_TIMEOUT_MS,
        hasSpareFiles: hasSpareFiles ?? (() => true),
        answer: (request, arrival) => this.#answer(request, arrival),
        upgraded: (socket, arrival) => this.#introduce(socket, arrival),
      });
    } catch (error) {
      throw cannotListen(error, hostname, port);
    }
  }

  async #answer(request: RequestHead, arrival: Arrival): Promise<Response | "upgrade"> {
    // Browsers say where a page came from: no page may use its visitor's browser to get in here.
    if (request.headers.has("origin")) return refusal(403, "No access for web pages.");
    const isUpgrade = request.headers.get("upgrade")?.toLowerCase() === "websocket";
    if (!this.#isLetIn(request, isUpgrade)) {
      return refusal(401, "A token is needed.", { "www-authenticate": "Bearer" });
    }
    if (isUpgrade) return "upgrade";
    if (this.#options.token !== undefined) arrival.settle();
    return await this.#show(request);
  }

  #isLetIn({ url, headers }: RequestHead, isUpgrade: boolean): boolean {
    const { token, pages } = this.#options;
    if (token === undefined) return true;
    const { pathname, searchParams } = url;
    if (!isUpgrade && pathname === pages?.open) return true;
    const mayShowInUrl = !isUpgrade && pathname === pages?.home;
    return carriesToken(headers.get("authorization"), token) ||
      (mayShowInUrl && isSecret(searchParams.get("token") ?? "", token));
  }

  /**
   * Without a token this machine alone sees pages. A page from elsewhere can have its own name lead
   * here, and then reads carry no origin; but they carry that name.
   */
  #isOwnHost({ url }: RequestHead): boolean {
    const { token, hostname, insecure = false } = this.#options;
    if (token !== undefined || insecure || !isLoopback(hostname)) return true;
    return isLoopback(url.hostname.replace(/^\[|\]$/g, ""));
  }

  #show(request: RequestHead): Response | Promise<Response> {
    const { pages } = this.#options;
    if (pages === undefined) {
      return refusal(426, "This is a node of Leat; it speaks WebSocket.", { upgrade: "websocket" });
    }
    if (!this.#isOwnHost(request)) return refusal(403, "No access for web pages.");
    if (request.method !== "GET" && request.method !== "HEAD") {
      return refusal(405, "Only GET and HEAD.", { allow: "GET, HEAD" });
    }
    const { pathname } = request.url;
    return pages.answer(pathname) ?? refusal(404, `There is no page ${pathname}.`);
  }

  /** Waits for the first message of a connection. */
  #introduce(socket: Socket, arrival: Arrival): void {
    const { helloTimeoutMs = HELLO_TIMEOUT_MS } = this.#options;
    const end = (error: LeatError) => {
      socket.send(writeBye(error));
      socket.close();
    };
    arrival.expired = () => {
      end(new LeatError("deadline_exceeded", `No hello within ${helloTimeoutMs} ms`));
    };
    const message = (data: Uint8Array | string) => {
      try {
        this.#link(socket, data);
        arrival.settle();
      } catch (error) {
        end(LeatError.from(error, "internal"));
      }
    };
    socket.listen({ message, closed: () => {} }, HELLO_BYTES_MAX);
  }

  #link(socket: Socket, data: Uint8Array | string): void {
    const { world, local, onLink, limits, token } = this.#options;
    const hello = readHello(data, "dialler");
    const { messageBytesMax } = { ...LINK_LIMITS, ...limits };
    socket.send(writeHello({ ...local(), role: "listener", messageBytesMax }));
    const peer: Peer = {
      remote: { node: hello.node, incarnation: hello.incarnation },
      ownName: hello.node,
      identity: token === undefined ? ANYONE : TOKEN_HOLDER,
      messageBytesMax: hello.messageBytesMax,
    };
    const link = new WebSocketLink(world, socket, peer, this.#options);
    this.#links.add(link);
    link.closed.then(() => this.#links.delete(link));
    onLink(link);
  }
}

function checkOptions(options: WebSocketServerOptions): void {
  const { hostname, token, insecure = false, cert, key } = options;
  if ((cert === undefined) !== (key === undefined)) {
    const [given, missing] = key === undefined ? ["cert", "key"] : ["key", "cert"];
    throw new LeatError(
      "invalid_argument",
      `TLS needs both cert and key: there is a ${given} and no ${missing}`,
    );
  }
  if (token !== undefined) checkToken(token);
  else if (!insecure && !isLoopback(hostname)) {
    throw new LeatError(
      "failed_precondition",
      `Listening on ${hostname} without a token would let anyone who reaches this machine run ` +
        "code on it; set a token (--token), listen on 127.0.0.1, or allow it (--insecure)",
    );
  }
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "::1" || /^127(\.\d{1,3}){3}$/.test(hostname);
}

function cannotListen(cause: unknown, hostname: string, port: number): LeatError {
  const where = `port ${port} of ${hostname}`;
  const name = cause instanceof Error ? cause.name : "";
  const why = cause instanceof Error ? cause.message : String(cause);
  switch (name) {
    case "AddrInUse":
      return new LeatError(
        "already_exists",
        `Cannot listen on ${where}: it is in use; stop what uses it, or take another port (0 takes a free one)`,
        { cause },
      );
    case "NotCapable":
    case "PermissionDenied":
      return new LeatError(
        "permission_denied",
        `Cannot listen on ${where}: ${why}; grant --allow-net=${hostname}:${port}, or take a port from 1024 on`,
        { cause },
      );
    case "InvalidData":
      return new LeatError("invalid_argument", `Cannot use the certificate or its key: ${why}`, {
        cause,
      });
    default:
      return new LeatError(
        "unavailable",
        `Cannot listen on ${where}: ${why}; listen on an address of this machine, or on 0.0.0.0`,
        { cause },
      );
  }
}
