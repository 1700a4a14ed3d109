/** The listening side: which nodes may connect, and how their connections are served. */
import { LeatError } from "../../core/error.ts";
import { RefusalLog } from "../../actors/runtime/access.ts";
import type { Identity } from "../../actors/runtime/identity.ts";
import type { Link, NodeId } from "../../actors/runtime/link.ts";
import type { World } from "../../actors/runtime/world.ts";
import { bracketed, isAddress } from "../connectors.ts";
import { LINK_LIMITS } from "../limits.ts";
import { type Admission, Authenticator } from "./tokens/authenticator.ts";
import { isLoopbackHost } from "../loopback.ts";
import { HELLO_BYTES_MAX, readHello, writeBye, writeHello } from "../hello.ts";
import { type Arrival, HttpListener, type HttpReply, refusal } from "./http/http_listener.ts";
import { cannotListen } from "./listen_error.ts";
import type { RequestHead } from "./http/http_request.ts";
import { type Pages, PageServer } from "./http/pages.ts";
import { HeldMemory } from "./held_frames.ts";
import { WebSocketLink, type WebSocketLinkOptions } from "./link.ts";
import type { Peer } from "./peer.ts";
import type { NearListener } from "./slots.ts";
import type { Socket } from "./socket.ts";
import { isNameOfOther } from "./tokens/proof.ts";
import type { AcceptedTokens } from "./tokens/token.ts";
import { Unread } from "./unread.ts";

/** Time limit for the hello of a connection, in ms. */
const HELLO_TIMEOUT_MS = 5_000;

/** Limit of one identity's open links; admins have none. Each link takes a file handle. */
const LINKS_PER_IDENTITY_MAX = 1_024;
/**
 * While this process may open fewer than `RESERVED_FILES` more files, an identity with
 * `LINKS_WHEN_SHORT_MAX` links gets no more. A listener needs fewer files than that to accept
 * connections.
 */
const RESERVED_FILES = 128;
const LINKS_WHEN_SHORT_MAX = 32;
/** Links of an identity between two checks of the files, which open many files and block the thread. */
const UNCHECKED_LINKS = 16;

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
  /** A client that proves none of them gets 401. Default: everybody is admitted. */
  readonly tokens?: AcceptedTokens;
  /**
   * Whether users configure the address of this node, which may differ from its name: a load
   * balancer's, for example. Default: nodes dial it by its own name.
   */
  readonly isService?: boolean;
  /** Listens beyond this machine without a token. Default false. */
  readonly insecure?: boolean;
  readonly local: () => NodeId;
  /**
   * The identity that a node's name belongs to, also while the node has no link. No other identity
   * but an admin gets a link under that name. Default: names belong to the nodes that are linked.
   */
  readonly ownerOf?: (node: string) => string | undefined;
  /** Receives every link with the identity of its other end; usually `system.attach`. */
  readonly onLink: (link: Link, admission: Admission) => void;
  /** Pages for browsers and tools on the same port; default none. */
  readonly pages?: Pages;
  /** Shares slots with diallers of this host. Default: the connections carry all messages. */
  readonly near?: () => NearListener | undefined;
  /** Time limit for the hello of a connection. Default 5,000 ms. */
  readonly helloTimeoutMs?: number;
  /** Whether this process may open `count` more files; else connections wait. Default: it may. */
  readonly hasSpareFiles?: (count: number) => boolean;
}

export interface WebSocketServer {
  /** `ws://host:port`, or `wss:`, with the real port. */
  readonly address: string;
  readonly port: number;
  /** Stops listening and closes all incoming links, within a second. */
  close(): Promise<void>;
}

/**
 * Listens for nodes that dial in.
 * @throws LeatError `failed_precondition` when it would listen beyond this machine without a token
 * and without `insecure`; `invalid_argument` for a certificate without its key or the reverse, or
 * one that cannot be read; `already_exists` when the port is in use; `permission_denied` when this
 * process may not listen there; `unavailable` when the host has no such interface.
 */
export function serveWebSocket(options: WebSocketServerOptions): WebSocketServer {
  return new Server(options);
}

class Server implements WebSocketServer {
  readonly address: string;
  readonly port: number;
  readonly #options: WebSocketServerOptions;
  readonly #listener: HttpListener;
  readonly #authenticator: Authenticator;
  readonly #links = new Map<WebSocketLink, Admission>();
  /** What all links of an identity share, by the identity's name. */
  readonly #memory = new Map<string, { readonly unread: Unread; readonly held: HeldMemory }>();
  readonly #refusals: RefusalLog;
  /** Whether few files could be opened at the last check. */
  #wasShort = false;
  readonly #pages: PageServer;
  /** The admissions of connections that become WebSockets. */
  readonly #admissions = new WeakMap<Arrival, Admission>();
  /** For each WebSocket without a hello: the function that ends it, and its admission. */
  readonly #waiting = new Map<(reason: LeatError) => void, Admission>();
  readonly #unfollow: () => void;
  /** Set when closing begins: no connection becomes a link any more. */
  #closing: LeatError | undefined;

  constructor(options: WebSocketServerOptions) {
    checkOptions(options);
    this.#options = options;
    this.#refusals = new RefusalLog(options.world);
    const { hostname, world, tokens, isService = false } = options;
    this.#authenticator = new Authenticator({
      world,
      tokens,
      isService,
      node: () => options.local().node,
    });
    this.#pages = new PageServer({
      pages: options.pages,
      authenticator: this.#authenticator,
      isOwnHost: (request) => this.#isOwnHost(request),
    });
    this.#listener = this.#listen();
    this.#unfollow = tokens?.whenChanged?.(() => this.#closeWithdrawn()) ?? (() => {});
    const scheme = options.cert === undefined ? "ws" : "wss";
    this.port = this.#listener.port;
    this.address = `${scheme}://${bracketed(hostname)}:${this.port}`;
  }

  async close(): Promise<void> {
    this.#unfollow();
    this.#closing ??= new LeatError("unavailable", `${this.address} has stopped listening`);
    for (const link of [...this.#links.keys()]) link.close(this.#closing);
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
        isBulk: this.#options.isService !== true,
        helloTimeoutMs: helloTimeoutMs ?? HELLO_TIMEOUT_MS,
        hasSpareFiles: hasSpareFiles ?? (() => true),
        answer: (request, arrival) => this.#answer(request, arrival),
        upgraded: (socket, arrival) =>
          this.#introduce(socket, arrival, this.#admissions.get(arrival)!),
      });
    } catch (error) {
      throw cannotListen(error, hostname, port);
    }
  }

  async #answer(request: RequestHead, arrival: Arrival): Promise<HttpReply> {
    // Browsers send the origin of a page. No page may connect here through its visitor's browser.
    if (request.headers.has("origin")) {
      return { response: refusal(403, "No access for web pages.") };
    }
    const isUpgrade = request.headers.get("upgrade")?.toLowerCase() === "websocket";
    if (!isUpgrade) return await this.#pages.answer(request, arrival);
    const admission = this.#authenticator.admit(request.headers);
    // The client answers the challenge over the same connection.
    if (admission instanceof Response) {
      arrival.isChallenged = true;
      return { response: admission, isOpen: true };
    }
    if (admission.isProved) arrival.proved(admission.identity);
    this.#admissions.set(arrival, admission);
    return { upgrade: admission.headers };
  }

  /**
   * Prevents DNS rebinding where no token protects the pages: a foreign page whose host name resolves
   * to this machine reads without an origin header. But its host header has that name.
   */
  #isOwnHost({ url }: RequestHead): boolean {
    const { tokens, hostname, insecure = false } = this.#options;
    if (tokens !== undefined || insecure || !isLoopbackHost(hostname)) return true;
    return isLoopbackHost(url.hostname);
  }

  /** Waits for the hello of a connection. */
  #introduce(socket: Socket, arrival: Arrival, admission: Admission): void {
    const { helloTimeoutMs = HELLO_TIMEOUT_MS } = this.#options;
    const end = (error: LeatError) => {
      this.#waiting.delete(end);
      socket.send(writeBye(error));
      socket.close();
    };
    this.#waiting.set(end, admission);
    arrival.expired = () => {
      end(new LeatError("deadline_exceeded", `No hello within ${helloTimeoutMs} ms`));
    };
    const message = (data: Uint8Array | string) => {
      try {
        this.#link(socket, data, admission);
        this.#waiting.delete(end);
        arrival.settle();
      } catch (error) {
        end(LeatError.from(error, "internal"));
      }
    };
    const closed = () => this.#waiting.delete(end);
    socket.listen({ message, broken: end, closed }, HELLO_BYTES_MAX);
  }

  #link(socket: Socket, data: Uint8Array | string, admission: Admission): void {
    const { world, local, onLink, limits } = this.#options;
    const near = this.#options.near?.();
    if (this.#closing !== undefined) throw this.#closing;
    // Tokens may have changed since the proof.
    const withdrawal = this.#authenticator.withdrawalOf(admission);
    if (withdrawal !== undefined) throw withdrawal;
    const hello = readHello(data, "dialler");
    checkName(hello.node, admission.identity, local().node);
    this.#checkDiallerName(hello.node, admission);
    this.#checkOwner(hello.node, admission.identity);
    this.#checkLinks(admission.identity);
    const { messageBytesMax } = { ...LINK_LIMITS, ...limits };
    const offer = near === undefined ? {} : { near: near.folder };
    socket.send(writeHello({ ...local(), role: "listener", messageBytesMax, ...offer }));
    const { name } = admission.identity;
    const peer: Peer = {
      remote: { node: hello.node, incarnation: hello.incarnation },
      ownName: hello.node,
      identity: admission.identity,
      messageBytesMax: hello.messageBytesMax,
      near,
      ...this.#memory.getOrInsertComputed(name, () => ({
        unread: new Unread(admission.identity),
        held: new HeldMemory(admission.identity),
      })),
      incompleteBytesOf: ({ name }) => this.#sumOf(name, (link) => link.incompleteBytes),
    };
    const link = new WebSocketLink(world, socket, peer, this.#options);
    this.#links.set(link, admission);
    link.closed.then(() => {
      this.#links.delete(link);
      if (!this.#hasLink(name)) this.#memory.delete(name);
    });
    onLink(link, admission);
  }

  /**
   * Workers learn the names of the clients that read from them, and clients those of local workers.
   * They must not use them.
   * @throws LeatError `permission_denied`.
   */
  #checkDiallerName(node: string, { tokenId, identity }: Admission): void {
    const token = tokenId === undefined ? undefined : this.#options.tokens?.find(tokenId)?.token;
    if (token === undefined || !isNameOfOther(node, token)) return;
    throw new LeatError(
      "permission_denied",
      `"${identity.name}" calls its node "${node}", a name made with another token`,
    );
  }

  /**
   * A worker that was cut off or restarts comes back under its address. Until then no other identity
   * may use the address.
   * @throws LeatError `unavailable`: the name is free once its worker counts as lost.
   */
  #checkOwner(node: string, identity: Identity): void {
    const owner = this.#options.ownerOf?.(node);
    if (owner === undefined || owner === identity.name || identity.role === "admin") return;
    const error = new LeatError(
      "unavailable",
      `"${identity.name}" calls its node "${node}", the address of a worker of "${owner}": it has ` +
        "to wait until that worker counts as lost (also if it is that worker, and its token got " +
        "another name), or to advertise an address of its own",
    );
    this.#refusals.note(identity, error);
    throw error;
  }

  /**
   * @throws LeatError `resource_exhausted` for an identity that has too many links, or many while
   *   others could soon get none.
   */
  #checkLinks({ name, role }: Identity): void {
    if (role === "admin") return;
    let count = 0;
    for (const { identity } of this.#links.values()) if (identity.name === name) count++;
    const isShort = count >= LINKS_WHEN_SHORT_MAX && this.#isShortOfFiles(count);
    if (count < LINKS_PER_IDENTITY_MAX && !isShort) return;
    throw new LeatError(
      "resource_exhausted",
      `"${name}" has ${count} links to this node, as many as one token may${
        isShort ? " while few files can be opened (ulimit -n)" : ""
      }: close some, or give programs tokens of their own`,
    );
  }

  /** @param links The links of the identity that asks for one more. */
  #isShortOfFiles(links: number): boolean {
    const { hasSpareFiles = () => true } = this.#options;
    if (this.#wasShort || links % UNCHECKED_LINKS === 0) {
      this.#wasShort = !hasSpareFiles(RESERVED_FILES + UNCHECKED_LINKS);
    }
    return this.#wasShort;
  }

  #hasLink(name: string): boolean {
    for (const { identity } of this.#links.values()) if (identity.name === name) return true;
    return false;
  }

  /** The sum over the links of an identity. */
  #sumOf(name: string, bytesOf: (link: WebSocketLink) => number): number {
    let bytes = 0;
    for (const link of this.#links.keys()) if (link.identity.name === name) bytes += bytesOf(link);
    return bytes;
  }

  /** The accepted tokens changed: closes all connections whose tokens were withdrawn. */
  #closeWithdrawn(): void {
    for (const [link, admission] of [...this.#links]) {
      const withdrawal = this.#authenticator.withdrawalOf(admission);
      if (withdrawal === undefined) continue;
      this.#options.world.log("info", `${withdrawal.message}: its link is closed`);
      link.close(withdrawal);
    }
    for (const [end, admission] of [...this.#waiting]) {
      const withdrawal = this.#authenticator.withdrawalOf(admission);
      if (withdrawal !== undefined) end(withdrawal);
    }
  }
}

/** The `reason` in the details of an error: a server would listen beyond this machine without a token. */
export const NO_TOKEN = "no_token";

function checkOptions(options: WebSocketServerOptions): void {
  const { hostname, tokens, insecure = false, cert, key } = options;
  if ((cert === undefined) !== (key === undefined)) {
    const [given, missing] = key === undefined ? ["cert", "key"] : ["key", "cert"];
    throw new LeatError(
      "invalid_argument",
      `TLS needs both cert and key: there is a ${given} and no ${missing}`,
    );
  }
  if (tokens === undefined && !insecure && !isLoopbackHost(hostname)) {
    throw new LeatError(
      "failed_precondition",
      `Listening on ${hostname} without a token would let anyone who reaches this machine run ` +
        "code on it; set a token (--token-file), listen on 127.0.0.1, or allow it (--insecure)",
      { details: { reason: NO_TOKEN } },
    );
  }
}

/**
 * A name is the destination of a node's messages. A name that is an address belongs to a node that
 * listens: a client that took a worker's name would receive the worker's messages.
 */
function checkName(node: string, { name, role }: Identity, own: string): void {
  const mayListen = role === "admin" || role === "worker";
  if (node !== own && (mayListen || !isAddress(node))) return;
  throw new LeatError(
    "permission_denied",
    `"${name}" has the role ${role} and calls its node "${node.slice(0, 80)}", which is ` +
      (node === own ? "this node's own name" : "an address, as of a node that listens"),
  );
}
