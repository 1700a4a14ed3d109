/** The memory that messages are written into. */
import { PAYLOAD_ALIGNMENT } from "./format.ts";

const SLAB_BYTES = 2 ** 16;
/** A larger message has a buffer of its own: it would use up most of a slab. */
const SLAB_MESSAGE_BYTES_MAX = 2 ** 12;

/**
 * Places messages one after another: creating a buffer takes longer than writing most messages.
 * Memory is never reused; a slab lives as long as its longest-kept message.
 */
export class MessageSlab {
  #slab = new Uint8Array(0);
  #used = 0;

  /** `byteLength` aligned zero bytes; undefined for more than fits the limit of a slab. */
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

/** Buffers that are kept: one is written while another is sent. */
const BUFFERS_MAX = 2;
/** Larger buffers are not kept, because a pipeline may need the memory. */
const BUFFER_BYTES_MAX = 16 * 2 ** 20;

/**
 * Reuses the memory of a few sent frames, such as batches of one size. New memory costs more than
 * copying into it: the system maps its pages on first touch, and the garbage collector runs for
 * every few of them.
 */
export class FramePool {
  readonly #buffers: ArrayBuffer[] = [];

  /** A buffer of that size with arbitrary content. */
  take(byteLength: number): ArrayBuffer {
    const at = this.#buffers.findIndex((buffer) => buffer.byteLength === byteLength);
    return at < 0 ? new ArrayBuffer(byteLength) : this.#buffers.splice(at, 1)[0]!;
  }

  /** Takes an unused buffer, and drops the oldest one. */
  give(buffer: ArrayBuffer): void {
    if (buffer.byteLength > BUFFER_BYTES_MAX) return;
    if (this.#buffers.push(buffer) > BUFFERS_MAX) this.#buffers.shift();
  }
}
