/** An open WebSocket as a link sees it, on either side. */
import type { LeatError } from "../../core/error.ts";
import { FRAGMENT_HEADER_BYTES } from "./frames.ts";

/** The first bytes of a fragment. They tell the receiver where in memory the rest belongs. */
export const PLACED_HEAD_BYTES = FRAGMENT_HEADER_BYTES;

export interface SocketEvents {
  /** A message: binary as bytes that belong to the receiver, text as a string. */
  message(data: Uint8Array | string): void;
  /** Bytes have arrived, perhaps only some of a message. */
  progress?(): void;
  /**
   * Returns memory for a message of `byteLength` bytes; its content is overwritten. Default: new
   * memory.
   */
  memory?(byteLength: number): ArrayBuffer;
  /**
   * Chooses the memory for the rest of a large message of `byteLength` bytes, after its first
   * {@linkcode PLACED_HEAD_BYTES} in `head`. When the message is complete, `placed` is called; if
   * this returned `undefined`, `message` is called instead.
   */
  place?(head: Uint8Array, byteLength: number): Uint8Array | undefined;
  /** The rest of a message is in the memory that `place` returned. */
  placed?(head: Uint8Array, rest: Uint8Array): void;
  /**
   * The other side has violated the protocol. What it sends from now on is discarded; the socket
   * closes after this call, which may still send the reason. Default: nothing is sent.
   */
  broken?(error: LeatError): void;
  /** The socket is closed or broke; called once. `isByPeer`: by the other side or its system. */
  closed(why: string, isByPeer: boolean): void;
}

export interface Socket {
  /** Bytes passed to `send` that the operating system has not accepted yet. */
  readonly bufferedAmount: number;
  /** Settles when this process has released the socket, or a close stays unanswered too long. */
  readonly released: Promise<void>;
  /**
   * Sets the callbacks. A message larger than `bytesMax` (default: the largest frame) violates the
   * protocol.
   */
  listen(events: SocketEvents, bytesMax?: number): void;
  /**
   * Sends a binary message, which must not change any more: `head`, if there is one, and `bytes`.
   * Does nothing when closed.
   */
  send(bytes: Uint8Array, head?: Uint8Array): void;
  /**
   * Sends a binary message that makes earlier ones with the same first byte useless, such as an
   * acknowledgement: it replaces one that is not written yet. Does nothing when closed.
   */
  sendNewest(bytes: Uint8Array): void;
  /** Sends the close frame and closes. Nothing more is sent; only `closed` is still called. */
  close(): void;
  /** Closes without a close frame, and releases everything. */
  drop(): void;
}
