/** An open WebSocket as a link sees it, on either side. */
import { FRAGMENT_HEADER_BYTES } from "./frames.ts";

/** Bytes of a message from which its receiver sees where the others belong. */
export const PLACED_HEAD_BYTES = FRAGMENT_HEADER_BYTES;

export interface SocketEvents {
  /** A message: binary as bytes that belong to the receiver, text as a string. */
  message(data: Uint8Array | string): void;
  /** Memory with arbitrary content for a whole message of so many bytes. Default: new memory. */
  memory?(byteLength: number): ArrayBuffer;
  /**
   * Where to read the rest of a large message of `byteLength` bytes, of which `head` are the first
   * {@linkcode PLACED_HEAD_BYTES}; then `placed` follows, not `message`. Undefined: `message`.
   */
  place?(head: Uint8Array, byteLength: number): Uint8Array | undefined;
  /** The rest of a message is where it belongs. */
  placed?(head: Uint8Array, rest: Uint8Array): void;
  /** The socket is closed or broke; called once. `isByPeer`: by the other side or its system. */
  closed(why: string, isByPeer: boolean): void;
}

export interface Socket {
  /** Bytes passed to `send` that the operating system has not accepted yet. */
  readonly bufferedAmount: number;
  /** Settles when this process has released the socket, or a close stays unanswered too long. */
  readonly released: Promise<void>;
  /** Sets the callbacks. A message above `bytesMax` (default: the largest frame) breaks it. */
  listen(events: SocketEvents, bytesMax?: number): void;
  /**
   * Sends a binary message, which must not change any more: `head`, if there is one, and `bytes`.
   * Does nothing when closed.
   */
  send(bytes: Uint8Array, head?: Uint8Array): void;
  /** Says goodbye and closes. Nothing more is sent; only `closed` is still called. */
  close(): void;
  /** Closes without a goodbye, and releases everything. */
  drop(): void;
}
