/**
 * Accepts connections, answers requests, and passes on those that become WebSockets.
 *
 * A process has few file handles, and open sockets take them. So a connection without a hello is
 * dropped after seconds, and the number of such connections is bounded (`newcomers.ts`). Some
 * handles are kept free for files. A process without free handles pauses accepting.
 */
import type { Identity } from "../../../actors/runtime/identity.ts";
import type { Timer, World } from "../../../actors/runtime/world.ts";
import { Sleep } from "../../../actors/runtime/timers.ts";
import { LeatError } from "../../../core/error.ts";
import { closeConnection, type Conn } from "../connection.ts";
import { FramedSocket } from "../framed_socket.ts";
import {
  NoRequest,
  readRequest,
  type RequestHead,
  writeResponse,
  writeUpgrade,
} from "./http_request.ts";
import { type Newcomer, Newcomers } from "./newcomers.ts";
import { securedBy } from "./tls_conn.ts";
import { acceptOf } from "./upgrade.ts";

/** Time limit for making an answer, and for sending it, in ms. */
const ANSWER_TIMEOUT_MS = 30_000;
/** Time limit for the other side to read the end of its answer and close, in ms. */
const LINGER_MS = 1_000;
/** Bytes read at a time of a request's body, which is discarded. */
const BODY_BYTES = 16_384;

/** How long nothing is accepted after a failure, in ms. Doubles with each failure, to the maximum. */
const BACK_OFF_MIN_MS = 20;
const BACK_OFF_MAX_MS = 1_000;

/** File handles that are kept free. */
const SPARE_FILES = 24;
/** Connections accepted between two checks for free handles. */
const UNCHECKED_MAX = 8;
/** Connections accepted before existing ones are read. */
const ACCEPTS_PER_MACROTASK = 4;
/** How long after a shortage fewer newcomers are admitted, in ms. */
const SHORTAGE_MS = 60_000;

/** The version of WebSocket (RFC 6455). */
const VERSION = "13";

interface HttpListenerOptions {
  readonly world: World;
  readonly hostname: string;
  readonly port: number;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /**
   * Whether the listener carries large messages. If so, it uses Deno's TLS, which is several times
   * as fast. But Deno's TLS keeps the file of a connection that is dropped during its handshake
   * until the other side closes.
   */
  readonly isBulk: boolean;
  /** Time limit for a request, and for a WebSocket's hello, in ms. */
  readonly helloTimeoutMs: number;
  /** Whether this process may open `count` more files. */
  readonly hasSpareFiles: (count: number) => boolean;
  answer(request: RequestHead, arrival: Arrival): Promise<HttpReply>;
  /** Receives a WebSocket. The callee calls `arrival.settle()` after the hello. */
  upgraded(socket: FramedSocket, arrival: Arrival): void;
}

export type HttpReply =
  | {
    readonly response: Response;
    /** In place of the body of the response. */
    readonly body?: Uint8Array;
    /** The connection stays open for one more request. Default: it is closed. */
    readonly isOpen?: boolean;
    /** Called once the answer is sent, or cannot be. */
    readonly ended?: () => void;
  }
  /** The connection becomes a WebSocket; the response has these headers, too. */
  | { readonly upgrade: Readonly<Record<string, string>> };

export class Arrival implements Newcomer {
  readonly address: string;
  /** Called on a timeout. Default: the connection is dropped. */
  expired = () => this.drop();
  /** The WebSocket after the upgrade. */
  socket: FramedSocket | undefined;
  isChallenged = false;
  readonly #close: () => void;
  readonly #newcomers: Newcomers;
  #isSettled = false;
  #timer: Timer | undefined;

  constructor(address: string, close: () => void, newcomers: Newcomers) {
    this.address = address;
    this.#close = close;
    this.#newcomers = newcomers;
    newcomers.add(this);
  }

  get isLinked(): boolean {
    return this.#isSettled && this.socket !== undefined;
  }

  /** Notes that the other side has proved its token. From then on it is hardly ever dropped. */
  proved({ name, role }: Identity): void {
    if (role === "admin") this.#newcomers.delete(this);
    else this.#newcomers.proved(this, name);
  }

  /** Ends the timeout: the hello has come, or the connection is closed. */
  settle(): void {
    this.#isSettled = true;
    this.#newcomers.delete(this);
    this.#timer?.cancel();
  }

  /** Starts a timeout. */
  within(world: World, delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = world.timer(delayMs, () => this.expired());
  }

  drop(): void {
    if (this.socket === undefined) this.#close();
    else this.socket.drop();
  }
}

/** Listens. @throws Errors of `Deno.listen` and `Deno.listenTls`. */
export class HttpListener {
  readonly port: number;
  readonly #options: HttpListenerOptions;
  readonly #listener: Deno.Listener<Deno.Conn>;
  #secure: (conn: Deno.Conn) => Conn = (conn) => conn;
  readonly #newcomers = new Newcomers();
  readonly #open = new Map<Arrival, Promise<void>>();
  readonly #accepting: Promise<void>;
  #isClosed = false;
  #closed: Promise<void> | undefined;
  /** The pause after a failure. */
  readonly #pause = new Sleep();
  #unchecked = 0;
  #shortageTimer: Timer | undefined;

  constructor(options: HttpListenerOptions) {
    this.#options = options;
    const { hostname, port, cert, key } = options;
    const address = { hostname, port };
    if (cert === undefined || key === undefined) this.#listener = Deno.listen(address);
    else {
      // Opened even if it is not used, because its errors say what is wrong with a certificate.
      const fast = Deno.listenTls({ ...address, cert, key, alpnProtocols: ["http/1.1"] });
      if (options.isBulk) this.#listener = fast;
      else {
        fast.close();
        this.#listener = Deno.listen(address);
        this.#secure = securedBy({ cert, key });
      }
    }
    this.port = (this.#listener.addr as Deno.NetAddr).port;
    this.#accepting = this.#acceptAll();
  }

  /** Drops connections without a hello; resolves when all are closed. Idempotent. */
  close(): Promise<void> {
    return this.#closed ??= this.#close();
  }

  async #close(): Promise<void> {
    this.#isClosed = true;
    this.#listener.close();
    this.#pause.wake();
    this.#shortageTimer?.cancel();
    await this.#accepting;
    for (const arrival of this.#open.keys()) if (!arrival.isLinked) arrival.drop();
    await Promise.all(this.#open.values());
  }

  async #acceptAll(): Promise<void> {
    let pauseMs = BACK_OFF_MIN_MS;
    let accepts = 0;
    while (!this.#isClosed) {
      try {
        this.#take(await this.#listener.accept());
        pauseMs = BACK_OFF_MIN_MS;
      } catch (error) {
        if (this.#isClosed) return;
        if (!isOfOneConnection(error)) {
          if (isOutOfFiles(error)) this.#shortage();
          else {
            const { message } = LeatError.from(error, "unavailable");
            this.#options.world.log("warn", `Cannot accept a connection: ${message}`);
          }
          await this.#pause.begin(this.#options.world, pauseMs);
          pauseMs = Math.min(BACK_OFF_MAX_MS, 2 * pauseMs);
        }
      }
      // Without a pause, many simultaneous connections would evict each other before they are read.
      if (++accepts % ACCEPTS_PER_MACROTASK === 0) {
        await new Promise<void>((resolve) => this.#options.world.macrotask(resolve));
      }
    }
  }

  #take(accepted: Deno.Conn): void {
    if (this.#isShort()) {
      this.#shortage();
      if (this.#isShort()) return closeConnection(accepted);
    }
    // Deno's TLS connections have no way to turn off Nagle's algorithm.
    if ("setNoDelay" in accepted) (accepted as Deno.TcpConn).setNoDelay(true);
    const conn = this.#secure(accepted);
    const { hostname } = accepted.remoteAddr as Deno.NetAddr;
    const arrival = new Arrival(hostname, () => closeConnection(conn), this.#newcomers);
    const serving = this.#serve(conn, arrival).finally(() => this.#open.delete(arrival));
    this.#open.set(arrival, serving);
  }

  #isShort(): boolean {
    if (++this.#unchecked < UNCHECKED_MAX) return false;
    const isShort = !this.#options.hasSpareFiles(SPARE_FILES + UNCHECKED_MAX);
    // During a shortage every connection is checked.
    this.#unchecked = isShort ? UNCHECKED_MAX : 0;
    return isShort;
  }

  /** Drops newcomers to free file handles, of which too few are left. */
  #shortage(): void {
    const { world, hostname } = this.#options;
    if (this.#shortageTimer === undefined) {
      world.log(
        "warn",
        `Too many files and connections are open to accept all that come to ${hostname}:${this.port}: ` +
          `${this.#open.size} connections, ${this.#newcomers.size} of which have not sent a hello ` +
          "themselves and may be dropped; raise the limit of open files (ulimit -n)",
      );
    }
    this.#shortageTimer?.cancel();
    this.#shortageTimer = world.timer(SHORTAGE_MS, () => {
      this.#shortageTimer = undefined;
      this.#newcomers.grow();
    });
    this.#newcomers.shrink(SPARE_FILES);
  }

  /** Serves a connection until it is closed. */
  async #serve(conn: Conn, arrival: Arrival): Promise<void> {
    const { world, helloTimeoutMs, upgraded } = this.#options;
    arrival.within(world, helloTimeoutMs);
    try {
      const socket = await this.#answer(conn, arrival);
      if (socket !== undefined) {
        arrival.socket = socket;
        upgraded.call(this.#options, socket, arrival);
        await socket.released;
      }
    } catch {
      // The connection broke, or was dropped.
    } finally {
      arrival.settle();
      arrival.drop();
    }
  }

  /** @returns The WebSocket after an upgrade. */
  async #answer(conn: Conn, arrival: Arrival): Promise<FramedSocket | undefined> {
    const first = await this.#answerOnce(conn, arrival, true);
    return first === "open" ? await this.#answerOnce(conn, arrival, false) : first;
  }

  #answerOnce(
    conn: Conn,
    arrival: Arrival,
    mayStayOpen: false,
  ): Promise<FramedSocket | undefined>;
  #answerOnce(
    conn: Conn,
    arrival: Arrival,
    mayStayOpen: true,
  ): Promise<FramedSocket | "open" | undefined>;
  /** Returns the WebSocket after an upgrade, or `"open"` if another request may come. */
  async #answerOnce(
    conn: Conn,
    arrival: Arrival,
    mayStayOpen: boolean,
  ): Promise<FramedSocket | "open" | undefined> {
    const { world } = this.#options;
    const request = await readRequest(conn).catch(refusalOf);
    if (request === undefined) return undefined;
    if (request instanceof Response) {
      return await this.#respond(conn, arrival, { response: request }, "GET");
    }
    const { head, rest } = request;
    const key = upgradeKey(head);
    // A page may take longer than a hello.
    if (key === undefined) arrival.within(world, ANSWER_TIMEOUT_MS);
    const answer: HttpReply = await this.#options.answer(head, arrival).catch(() => ({
      response: refusal(500, "The answer failed."),
    }));
    if ("response" in answer) {
      const { response, isOpen = false } = answer;
      if (!isOpen || !mayStayOpen) return await this.#respond(conn, arrival, answer, head.method);
      await writeResponse(conn, response, { method: head.method, isOpen: true });
      return "open";
    }
    if (key === undefined) {
      return await this.#respond(conn, arrival, { response: notUpgraded(head) }, head.method);
    }
    await writeUpgrade(conn, acceptOf(key), answer.upgrade);
    return new FramedSocket(world, conn, { first: rest });
  }

  async #respond(
    conn: Conn,
    arrival: Arrival,
    { response, body, ended }: Extract<HttpReply, { response: Response }>,
    method: string,
  ): Promise<undefined> {
    const { world } = this.#options;
    try {
      arrival.within(world, ANSWER_TIMEOUT_MS);
      await writeResponse(conn, response, { method, body });
      arrival.within(world, LINGER_MS);
      await linger(conn);
    } finally {
      ended?.();
    }
  }
}

function refusalOf(error: unknown): Response {
  if (error instanceof NoRequest) return refusal(error.status, error.message);
  throw error;
}

/** Waits until the other side closes: closing with unread bytes would discard the answer. */
async function linger(conn: Conn): Promise<void> {
  await conn.closeWrite();
  const bytes = new Uint8Array(BODY_BYTES);
  while (await conn.read(bytes) !== null);
}

/** The key of an RFC 6455 upgrade; undefined for other requests. */
function upgradeKey({ method, headers }: RequestHead): string | undefined {
  const key = headers.get("sec-websocket-key") ?? "";
  const version = headers.get("sec-websocket-version");
  const isUpgrade = /\bupgrade\b/i.test(headers.get("connection") ?? "");
  const isValid = method === "GET" && isUpgrade && version === VERSION &&
    /^[+/0-9A-Za-z]{22}==$/.test(key);
  return isValid ? key : undefined;
}

/** The answer to an invalid upgrade: one of another version is told which there is. */
function notUpgraded({ headers }: RequestHead): Response {
  const version = headers.get("sec-websocket-version") ?? VERSION;
  return version === VERSION ? refusal(400, "No valid WebSocket upgrade.") : refusal(
    426,
    `Only version ${VERSION} of WebSocket.`,
    { upgrade: "websocket", "sec-websocket-version": VERSION },
  );
}

export function refusal(
  status: number,
  text: string,
  headers: Record<string, string> = {},
): Response {
  return new Response(`${text}\n`, { status, headers });
}

/**
 * Whether the other side reset the connection before it was accepted. Pausing after each of these
 * would lock out other clients.
 */
function isOfOneConnection(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === "ENOTCONN" || code === "ECONNABORTED" || code === "ECONNRESET";
}

function isOutOfFiles(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === "EMFILE" || code === "ENFILE" || code === "ENOBUFS" || code === "ENOMEM";
}
