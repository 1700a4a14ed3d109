/** Frames that a link has received and opens later. */
import { Fifo } from "../../actors/runtime/fifo.ts";
import { FRAME_BYTES_MAX, malformed } from "./frames.ts";
import { WINDOW_BYTES } from "./outbox.ts";

/** Most bytes that are held: a sender that keeps to its window sends no more. */
const HELD_BYTES_MAX = WINDOW_BYTES + FRAME_BYTES_MAX;

/** A queue of frames that are not acknowledged yet. */
export class HeldFrames {
  readonly #frames = new Fifo<Uint8Array>();
  #last: Uint8Array | undefined;
  #bytes = 0;

  get length(): number {
    return this.#frames.length;
  }

  /** @throws LeatError `invalid_argument` for a sender that does not keep to its window. */
  push(frame: Uint8Array): void {
    this.#bytes += frame.length;
    if (this.#bytes > HELD_BYTES_MAX) {
      throw malformed(`more than the window of ${WINDOW_BYTES} bytes unacknowledged`);
    }
    this.#frames.push(frame);
    this.#last = frame;
  }

  shift(): Uint8Array | undefined {
    const frame = this.#frames.shift();
    if (this.#frames.length === 0) this.#last = undefined;
    this.#bytes -= frame?.length ?? 0;
    return frame;
  }

  /** The frame that came last. */
  get last(): Uint8Array | undefined {
    return this.#last;
  }

  clear(): void {
    this.#last = undefined;
    while (this.shift() !== undefined);
  }
}
