/** The memory that messages are written into. */
import { PAYLOAD_ALIGNMENT } from "./format.ts";

const SLAB_BYTES = 2 ** 16;
/** A larger message gets a buffer of its own: a slab would hold only a few of its size. */
const SLAB_MESSAGE_BYTES_MAX = 2 ** 12;

/**
 * Places messages one after another: creating a buffer takes longer than writing most messages.
 * Memory is never reused; a slab lives as long as its longest-kept message.
 */
export class MessageSlab {
  #slab = new Uint8Array(0);
  #used = 0;

  /** `byteLength` aligned zero bytes; `undefined` for a message that is too large for a slab. */
  take(byteLength: number): Uint8Array<ArrayBuffer> | undefined {
    if (byteLength > SLAB_MESSAGE_BYTES_MAX) return undefined;
    if (this.#used + byteLength > this.#slab.length) {
      this.#slab = new Uint8Array(SLAB_BYTES);
      this.#used = 0;
    }
    const bytes = this.#slab.subarray(this.#used, this.#used + byteLength);
    this.#used += Math.ceil(byteLength / PAYLOAD_ALIGNMENT) * PAYLOAD_ALIGNMENT;
    return bytes;
  }
}

/** Limit of the kept buffers. A few frames are acknowledged or released at the same time. */
const BUFFERS_MAX = 8;
/** Limit of the kept bytes: a pipeline may need the memory. */
const BYTES_MAX = 32 * 2 ** 20;

/**
 * Reuses the memory of a few frames that were sent or read, such as batches of one size. New memory
 * costs more than copying into it: the system maps its pages on first touch, and the garbage
 * collector runs for every few of them.
 */
export class FramePool {
  readonly #buffers: ArrayBuffer[] = [];
  #bytes = 0;

  /** A buffer of that size with arbitrary content. */
  take(byteLength: number): ArrayBuffer {
    const at = this.#buffers.findLastIndex((buffer) => buffer.byteLength === byteLength);
    if (at < 0) return new ArrayBuffer(byteLength);
    this.#bytes -= byteLength;
    return this.#buffers.splice(at, 1)[0]!;
  }

  /** Takes an unused buffer, and drops the oldest ones beyond the limits. */
  readonly give = (buffer: ArrayBuffer): void => {
    if (buffer.byteLength > BYTES_MAX) return;
    this.#buffers.push(buffer);
    this.#bytes += buffer.byteLength;
    while (this.#buffers.length > BUFFERS_MAX || this.#bytes > BYTES_MAX) {
      this.#bytes -= this.#buffers.shift()!.byteLength;
    }
  };
}
