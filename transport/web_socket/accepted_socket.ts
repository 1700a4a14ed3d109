/**
 * The listening side's end of a WebSocket: the platform's own.
 *
 * @module
 */
import type { Socket, SocketEvents } from "./socket.ts";

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
  readonly #socket: WebSocket;
  #events: SocketEvents | undefined;
  #error: string | undefined;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    const released = Promise.withResolvers<void>();
    this.released = released.promise;
    socket.onmessage = ({ data }) => {
      this.#events?.message(data instanceof ArrayBuffer ? new Uint8Array(data) : String(data));
    };
    socket.onerror = (event) => this.#error = (event as ErrorEvent).message;
    socket.onclose = ({ code, reason, wasClean }) => {
      released.resolve();
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
    this.#socket.close();
  }
}
