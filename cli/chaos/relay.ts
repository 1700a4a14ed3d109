/**
 * A TCP relay in front of each process of a cluster. It can cut the process's connections.
 *
 * Cutting a connection between two other processes would need root. Instead each process advertises
 * its relay's address, so that all others reach it through the relay. The relay closes or stalls real
 * sockets, with their buffers and backpressure.
 */
import { keptPort } from "../../platform/nodes/kept_port.ts";

/** The faults of connections. */
export const CUTS = ["close", "freeze", "half-close"] as const;
type CutKind = (typeof CUTS)[number];

/** Bytes that are read at a time. */
const CHUNK_BYTES = 64 * 1_024;
const HOST = "127.0.0.1";

/** The relay in front of one process. */
export class Relay implements Disposable {
  /** The port at which the process itself listens. */
  readonly port: number;
  readonly #listener = Deno.listen({ hostname: HOST, port: 0 });
  readonly #connections = new Set<Connection>();
  /** How many freezes of all connections are in progress. New connections wait for their end. */
  #frozen = 0;

  constructor() {
    this.port = keptPort(HOST, (count) => Math.floor(Math.random() * count));
    this.#accept();
  }

  /** `host:port` at which others reach the process. */
  get advertise(): string {
    return `${HOST}:${this.#listener.addr.port}`;
  }

  /** How many connections are open. */
  get open(): number {
    return this.#connections.size;
  }

  /**
   * Cuts connections. Returns how many.
   * @param choose Chooses one connection by index. Undefined: all connections, and if they are frozen,
   * also new ones.
   * @param durationMs How long connections are frozen.
   */
  cut(kind: CutKind, choose: ((count: number) => number) | undefined, durationMs: number): number {
    const all = [...this.#connections];
    const chosen = choose === undefined
      ? all
      : all.slice(choose(Math.max(1, all.length))).slice(0, 1);
    if (kind === "freeze") {
      if (choose === undefined) this.#freezeNew(durationMs);
      for (const connection of chosen) connection.freeze(durationMs);
    } else {
      for (const connection of chosen) connection[kind === "close" ? "close" : "closeHalf"]();
    }
    return chosen.length;
  }

  [Symbol.dispose](): void {
    this.#listener.close();
    for (const connection of this.#connections) connection.close();
  }

  #freezeNew(durationMs: number): void {
    this.#frozen++;
    setTimeout(() => this.#frozen--, durationMs);
  }

  async #accept(): Promise<void> {
    try {
      for await (const caller of this.#listener) this.#connect(caller);
    } catch (error) {
      // The listener was closed while it waited.
      if (!(error instanceof Deno.errors.BadResource)) throw error;
    }
  }

  async #connect(caller: Deno.TcpConn): Promise<void> {
    while (this.#frozen > 0) await sleep(50);
    let process: Deno.TcpConn;
    try {
      process = await Deno.connect({ hostname: HOST, port: this.port });
    } catch {
      // The process is down: close the caller's connection, as its host would.
      caller.close();
      return;
    }
    const connection = new Connection(caller, process);
    this.#connections.add(connection);
    await connection.ended;
    this.#connections.delete(connection);
  }
}

/** A caller's connection to the relay, and the relay's connection to the process. */
class Connection {
  /** Resolves when both are closed. */
  readonly ended: Promise<void>;
  readonly #ends: readonly [Deno.TcpConn, Deno.TcpConn];
  #isClosed = false;
  #thaw: Promise<void> | undefined;

  constructor(caller: Deno.TcpConn, process: Deno.TcpConn) {
    this.#ends = [caller, process];
    // The relay must not add Nagle's delays.
    for (const end of this.#ends) end.setNoDelay(true);
    this.ended = Promise.all([this.#pump(caller, process), this.#pump(process, caller)])
      .then(() => this.close());
  }

  /** Forwards nothing for a time, without closing anything. */
  freeze(durationMs: number): void {
    const thaw = Promise.all([this.#thaw, sleep(durationMs)]).then(() => {
      if (this.#thaw === thaw) this.#thaw = undefined;
    });
    this.#thaw = thaw;
  }

  /** Ends the input of the process. Its output is still forwarded. */
  closeHalf(): void {
    this.#ends[1].closeWrite().catch(() => this.close());
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const end of this.#ends) end.close();
  }

  async #pump(from: Deno.TcpConn, to: Deno.TcpConn): Promise<void> {
    const chunk = new Uint8Array(CHUNK_BYTES);
    try {
      for (;;) {
        await this.#thaw;
        const count = await from.read(chunk);
        await this.#thaw;
        if (count === null) break;
        for (let sent = 0; sent < count;) sent += await to.write(chunk.subarray(sent, count));
      }
      await to.closeWrite();
    } catch {
      // The connection was reset, or closed by a cut: neither side can continue.
      this.close();
    }
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
