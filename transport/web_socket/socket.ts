/**
 * An open WebSocket as a link sees it, whichever end of it this is.
 *
 * @module
 */

/** What happens on a socket. */
export interface SocketEvents {
  /** A message: binary as bytes that belong to the receiver, text as a string. */
  message(data: Uint8Array | string): void;
  /**
   * The socket is closed, by either side or because it broke; comes once.
   *
   * @param isByPeer The other side has closed it, as far as can be told, or its machine has in its
   * stead, which it does where a process has ended.
   */
  closed(why: string, isByPeer: boolean): void;
}

/** An open WebSocket. */
export interface Socket {
  readonly isOpen: boolean;
  /** Bytes that `send` took and the operating system did not yet. */
  readonly bufferedAmount: number;
  /**
   * Settles when nothing of the socket is left in this process, or the other side has not answered a
   * close for so long that the rest is left to the platform.
   */
  readonly released: Promise<void>;
  /**
   * Says who is told of events from now on.
   *
   * @param bytesMax A larger message breaks the connection. Default: the largest frame of the wire.
   */
  listen(events: SocketEvents, bytesMax?: number): void;
  /** Sends a binary message; its bytes are copied before this returns. Does nothing when closed. */
  send(bytes: Uint8Array): void;
  /** Says goodbye and closes. Nothing more is sent, nothing more is told but `closed`. */
  close(): void;
  /** Closes without a goodbye; nothing is left of the socket afterwards. */
  drop(): void;
}
