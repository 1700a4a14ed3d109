/**
 * A block of bytes that travels inside a message as it is.
 *
 * @module
 */

/**
 * Bytes that were encoded before (a batch on its way through, say) and that nobody on the way needs
 * to read. In a message they take an aligned place of their own, so an encoded message inside of
 * one decodes without a copy where it arrives. The bytes must not change while anyone holds the
 * payload.
 */
export class Payload {
  readonly bytes: Uint8Array;
  /**
   * Whether the bytes may be read by several threads at once, and so need not be copied or moved to
   * reach one.
   */
  readonly shared: boolean;
  /**
   * Whether nothing else lies in the buffer: what is before the bytes is room for a message's
   * envelope, and all of it may move.
   */
  readonly isAlone: boolean;
  #roomTaken = false;

  /**
   * @param bytes Kept, not copied.
   * @param options `shared`: default is whether the bytes lie on a `SharedArrayBuffer`. `isAlone`:
   * default is whether they are all of their buffer.
   */
  constructor(
    bytes: Uint8Array,
    options: { readonly shared?: boolean; readonly isAlone?: boolean } = {},
  ) {
    this.bytes = bytes;
    this.shared = options.shared ?? bytes.buffer instanceof SharedArrayBuffer;
    this.isAlone = options.isAlone ?? bytes.buffer.byteLength === bytes.byteLength;
  }

  /** How many bytes there are. */
  get byteLength(): number {
    return this.bytes.byteLength;
  }

  /**
   * The so many bytes before these, and these: to write an envelope there instead of copying them.
   * Given once, as a message that was written there may wait to be sent; and only where there is room.
   */
  takeRoom(byteLength: number): Uint8Array<ArrayBuffer> | undefined {
    const { buffer, byteOffset } = this.bytes;
    if (this.#roomTaken || !this.isAlone || this.shared) return undefined;
    if (byteOffset < byteLength || !(buffer instanceof ArrayBuffer)) return undefined;
    this.#roomTaken = true;
    return new Uint8Array(buffer, byteOffset - byteLength, byteLength + this.byteLength);
  }

  /**
   * What a receiver on the same thread gets: the payload itself, or a copy where the sender still
   * needs the bytes. Bytes on a `SharedArrayBuffer` are never copied.
   */
  handOver(kept: boolean): Payload {
    if (this.bytes.buffer instanceof SharedArrayBuffer) return this;
    return this.shared || kept ? new Payload(this.bytes.slice()) : this;
  }
}
