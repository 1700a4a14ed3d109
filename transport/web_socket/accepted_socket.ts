/**
 * The listening side's end of a WebSocket: the platform's own.
 *
 * @module
 */
import type { Timer, World } from "../../actors/runtime/world.ts";
import type { Socket, SocketEvents } from "./socket.ts";

/**
 * How long the other side may take to answer a close, in ms. The platform waits for as long as there is
 * a connection, which a process that is busy or paused keeps, and lets nobody drop it.
 */
const CLOSE_TIMEOUT_MS = 500;

/**
 * How the platform says that a connection was closed or reset from the other side: in words alone. A
 * machine resets the connections of a process that has ended with bytes unread, so that a reset is no
 * trouble of the network, but its opposite: something there has answered. What has timed out, or finds
 * no way, is not among these.
 */
const CLOSED_BY_PEER = /unexpected eof|peer closed|reset by peer|broken pipe|forcibly closed/i;

/** A WebSocket that a server upgraded. */
export class AcceptedSocket implements Socket {
  readonly released: Promise<void>;
  readonly #release: () => void;
  readonly #world: World;
  readonly #socket: WebSocket;
  #closeTimer: Timer | undefined;
  #events: SocketEvents | undefined;
  #error: string | undefined;

  constructor(world: World, socket: WebSocket) {
    this.#world = world;
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    const released = Promise.withResolvers<void>();
    this.released = released.promise;
    this.#release = released.resolve;
    socket.onmessage = ({ data }) => {
      this.#events?.message(data instanceof ArrayBuffer ? new Uint8Array(data) : String(data));
    };
    socket.onerror = (event) => this.#error = (event as ErrorEvent).message;
    socket.onclose = ({ code, reason, wasClean }) => {
      this.#closeTimer?.cancel();
      this.#release();
      const why = this.#error || reason || `WebSocket code ${code}`;
      this.#events?.closed(why, wasClean || CLOSED_BY_PEER.test(why));
    };
  }

  get isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  get bufferedAmount(): number {
    return this.#socket.bufferedAmount;
  }

  listen(events: SocketEvents): void {
    this.#events = events;
  }

  send(bytes: Uint8Array): void {
    if (this.isOpen) this.#socket.send(bytes as Uint8Array<ArrayBuffer>);
  }

  close(): void {
    if (this.#socket.readyState >= WebSocket.CLOSING) return;
    this.#socket.close();
    this.#closeTimer = this.#world.timer(CLOSE_TIMEOUT_MS, this.#release);
  }
}
