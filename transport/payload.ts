/** A block of bytes that a message carries unchanged. */

/**
 * Encoded bytes (for example a batch that passes through) that intermediate nodes need not read. In
 * a message they have an aligned position of their own, so a message nested in another decodes
 * without a copy at its destination. The bytes must not change while anyone holds the payload.
 */
export class Payload {
  readonly bytes: Uint8Array;
  /**
   * Whether several threads may read the bytes at once, so that sending them to another thread
   * needs no copy or transfer.
   */
  readonly shared: boolean;
  /**
   * Whether the buffer holds nothing else: the space before the bytes may take a message's
   * envelope, and the buffer may be transferred.
   */
  readonly isAlone: boolean;
  #roomTaken = false;

  /**
   * @param bytes Kept, not copied.
   * @param options `shared`: default is whether the bytes are on a `SharedArrayBuffer`. `isAlone`:
   * default is whether they fill their buffer.
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
   * The `byteLength` bytes before the payload, followed by the payload: to write an envelope there
   * instead of copying. Succeeds once, because a message that was written there may wait to be
   * sent, and only if there is enough space.
   */
  takeRoom(byteLength: number): Uint8Array<ArrayBuffer> | undefined {
    const { buffer, byteOffset } = this.bytes;
    if (this.#roomTaken || !this.isAlone || this.shared) return undefined;
    if (byteOffset < byteLength || !(buffer instanceof ArrayBuffer)) return undefined;
    this.#roomTaken = true;
    return new Uint8Array(buffer, byteOffset - byteLength, byteLength + this.byteLength);
  }

  /**
   * The payload for a receiver on the same thread: this object, or a copy if the sender still needs
   * the bytes. Bytes on a `SharedArrayBuffer` are never copied.
   */
  handOver(kept: boolean): Payload {
    if (this.bytes.buffer instanceof SharedArrayBuffer) return this;
    return this.shared || kept ? new Payload(this.bytes.slice()) : this;
  }
}
