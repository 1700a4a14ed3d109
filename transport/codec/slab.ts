/** Memory for many small messages that are never transferred to another thread. */
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
