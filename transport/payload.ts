/** Payloads: bytes that a message carries and that intermediate nodes do not decode. */
import { copyOfArray, ownBytes } from "../core/bytes.ts";

/** Small messages arrive together in buffers of at most this size. */
const TOGETHER_BYTES_MAX = 2 ** 20;

/** Buffers that a system call is sending now: their memory must not change. */
export const buffersBeingWritten = new WeakSet<ArrayBufferLike>();

/**
 * Encoded bytes (for example a batch that passes through) that intermediate nodes need not read. In
 * a message they have an aligned position of their own, so a message nested in another decodes
 * without a copy at its destination. The bytes must not change while anyone holds the payload.
 */
export class Payload {
  readonly bytes: Uint8Array;
  /** Whether threads may share the bytes: sending them needs no copy or transfer then. */
  readonly shared: boolean;
  /** Whether the buffer holds nothing else: it may be transferred, or take an envelope. */
  readonly isAlone: boolean;
  /** Whether the payload came through a slot, and not over the connection. */
  readonly cameInSlot: boolean;
  readonly #recycle: ((buffer: ArrayBuffer) => void) | undefined;
  #roomTaken = false;
  /** Whether a receiver on this thread has the memory. */
  #isGivenAway = false;

  /**
   * @param bytes Kept, not copied.
   * @param options `shared`: default is whether the bytes are on a `SharedArrayBuffer`. `isAlone`:
   * default is whether they fill their buffer. `recycle`: gets the memory when it is released;
   * default is to free it.
   */
  constructor(
    bytes: Uint8Array,
    options: {
      readonly shared?: boolean;
      readonly isAlone?: boolean;
      readonly recycle?: ((buffer: ArrayBuffer) => void) | undefined;
      readonly cameInSlot?: boolean | undefined;
    } = {},
  ) {
    this.bytes = bytes;
    this.shared = options.shared ?? bytes.buffer instanceof SharedArrayBuffer;
    this.isAlone = options.isAlone ?? bytes.buffer.byteLength === bytes.byteLength;
    this.cameInSlot = options.cameInSlot ?? false;
    this.#recycle = options.recycle;
  }

  get byteLength(): number {
    return this.bytes.byteLength;
  }

  /**
   * A view of `byteLength` bytes before the payload, for an envelope, and of the payload.
   * Succeeds once (a message written there may still wait to be sent), and only if there is space.
   */
  takeRoom(byteLength: number): Uint8Array<ArrayBuffer> | undefined {
    const { buffer, byteOffset } = this.bytes;
    if (this.#roomTaken || !this.isAlone || this.shared) return undefined;
    if (byteOffset < byteLength || !(buffer instanceof ArrayBuffer)) return undefined;
    this.#roomTaken = true;
    return new Uint8Array(buffer, byteOffset - byteLength, byteLength + this.byteLength);
  }

  /** This payload; or a copy if its buffer is much larger, as a hostile sender could make it. */
  toKeep(): Payload {
    const own = this.shared ? this.bytes : ownBytes(this.bytes, TOGETHER_BYTES_MAX);
    return own === this.bytes ? this : new Payload(own, { cameInSlot: this.cameInSlot });
  }

  /**
   * The payload for a receiver on this thread, which may release the memory; or a copy if the sender
   * still needs the bytes. Bytes on a `SharedArrayBuffer` are never copied.
   */
  handOver(kept: boolean): Payload {
    if (this.bytes.buffer instanceof SharedArrayBuffer) return this;
    if (this.shared || kept) return new Payload(copyOfArray(this.bytes));
    const { bytes, isAlone, cameInSlot } = this;
    const given = new Payload(bytes, { isAlone, cameInSlot, recycle: this.#recycle });
    given.#roomTaken = this.#roomTaken;
    // Only the first receiver may write there.
    this.#roomTaken = true;
    this.#isGivenAway = true;
    return given;
  }

  /**
   * Frees or recycles the memory now, unless a receiver on this thread has it. If large buffers
   * were left to the garbage collector, it would run often. A message that is still being sent is
   * cut off, because all views of the memory become empty.
   */
  release(): void {
    const { buffer } = this.bytes;
    if (this.#isGivenAway || !this.isAlone || !(buffer instanceof ArrayBuffer)) return;
    if (buffer.detached) return;
    const isReused = this.#recycle !== undefined && !buffersBeingWritten.has(buffer);
    const memory = buffer.transfer(isReused ? buffer.byteLength : 0);
    if (isReused) this.#recycle!(memory);
  }
}
