/**
 * Room for many small messages that are never moved to another thread.
 *
 * @module
 */
import { PAYLOAD_ALIGNMENT } from "./format.ts";

const SLAB_BYTES = 2 ** 16;
/** A larger message has a buffer of its own: little would be left of a slab. */
const SLAB_MESSAGE_BYTES_MAX = 2 ** 12;

/**
 * Lays messages one behind the other: making a buffer takes longer than writing most messages. What
 * was given out is never given out again; a slab lasts as long as the longest kept of its messages.
 */
export class MessageSlab {
  #slab = new Uint8Array(0);
  #used = 0;

  /** So many zero bytes at an aligned place; undefined for more than belong into a slab. */
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
