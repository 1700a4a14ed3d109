/**
 * Memory of frames that have been sent, for the next ones. New memory costs more than the copy into
 * it: its pages are made when they are first touched, and the garbage collector runs for every few of
 * them.
 *
 * @module
 */

/** Buffers that are kept: one is written while another is sent. */
const BUFFERS_MAX = 2;
/** Larger buffers are not kept: they would hold memory that a pipeline may need. */
const BUFFER_BYTES_MAX = 16 * 2 ** 20;

/** Keeps a few buffers. Elements of one size, as batches are, take theirs from it. */
export class FramePool {
  readonly #buffers: ArrayBuffer[] = [];

  /** A buffer of that size, with anything in it. */
  take(byteLength: number): ArrayBuffer {
    const at = this.#buffers.findIndex((buffer) => buffer.byteLength === byteLength);
    return at < 0 ? new ArrayBuffer(byteLength) : this.#buffers.splice(at, 1)[0]!;
  }

  /** Takes a buffer that nobody uses any more. The oldest one gives way to it. */
  give(buffer: ArrayBuffer): void {
    if (buffer.byteLength > BUFFER_BYTES_MAX) return;
    if (this.#buffers.push(buffer) > BUFFERS_MAX) this.#buffers.shift();
  }
}
