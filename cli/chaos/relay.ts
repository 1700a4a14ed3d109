/**
 * A TCP relay in front of each process of a cluster, which can cut connections.
 *
 * Cutting a connection between two other processes from outside needs root. If a process advertises
 * the relay's address as its own, all others reach it through the relay. The relay closes or stalls
 * real sockets, with their buffers and backpressure.
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
  /** Freezes in progress, which also apply to new connections. */
  #frozen = 0;

  constructor() {
    this.port = keptPort(HOST, (count) => Math.floor(Math.random() * count));
    this.#accept();
  }

  /** `host:port` at which others reach the process. */
  get advertise(): string {
    return `${HOST}:${this.#listener.addr.port}`;
  }

  /** Connections that are open now. */
  get open(): number {
    return this.#connections.size;
  }

  /**
   * Cuts connections; returns how many.
   * @param choose Chooses one by index. Undefined: all, and with `freeze` also new ones meanwhile.
   * @param lastsMs How long connections are frozen.
   */
  cut(kind: CutKind, choose: ((count: number) => number) | undefined, lastsMs: number): number {
    const all = [...this.#connections];
    const chosen = choose === undefined
      ? all
      : all.slice(choose(Math.max(1, all.length))).slice(0, 1);
    if (kind === "freeze") {
      if (choose === undefined) this.#freezeNew(lastsMs);
      for (const connection of chosen) connection.freeze(lastsMs);
    } else {
      for (const connection of chosen) connection[kind === "close" ? "close" : "closeHalf"]();
    }
    return chosen.length;
  }

  [Symbol.dispose](): void {
    this.#listener.close();
    for (const connection of this.#connections) connection.close();
  }

  #freezeNew(lastsMs: number): void {
    this.#frozen++;
    setTimeout(() => this.#frozen--, lastsMs);
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

/** A caller's connection to the relay, and the relay's to the process. */
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

  /** Lets nothing pass for a time. Neither side notices. */
  freeze(lastsMs: number): void {
    const thaw = Promise.all([this.#thaw, sleep(lastsMs)]).then(() => {
      if (this.#thaw === thaw) this.#thaw = undefined;
    });
    this.#thaw = thaw;
  }

  /** Ends the input of the process. Its output still passes. */
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
        for (let at = 0; at < count;) at += await to.write(chunk.subarray(at, count));
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
