/**
 * Reuses the memory of sent frames. New memory costs more than copying into it: the system maps its
 * pages on first touch, and the garbage collector runs for every few of them.
 */

/** Buffers that are kept: one is written while another is sent. */
const BUFFERS_MAX = 2;
/** Larger buffers are not kept, because a pipeline may need the memory. */
const BUFFER_BYTES_MAX = 16 * 2 ** 20;

/** Keeps a few buffers. It helps elements of equal size, such as batches. */
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
