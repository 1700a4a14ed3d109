/** Frames that a link has received and opens later. */
import { LeatError } from "../../core/error.ts";
import { Fifo } from "../../core/fifo.ts";
import type { Identity } from "../../actors/runtime/identity.ts";
import { FRAME_BYTES_MAX, malformed } from "./frames.ts";
import { WINDOW_BYTES } from "./outbox.ts";
import { hasBound } from "./unread.ts";

/** Limit of the bytes that a link holds. A sender that respects the window sends no more. */
const HELD_BYTES_MAX = WINDOW_BYTES + FRAME_BYTES_MAX;
/** Limit of the bytes that all links of a client or viewer to one node hold together. */
const IDENTITY_HELD_BYTES_MAX = 256 * 2 ** 20;
/** The memory of a frame besides its bytes: a sender may send many tiny frames. */
const FRAME_MEMORY_BYTES = 256;

/** Memory of the frames that all links of one identity hold at one node. */
export class HeldMemory {
  readonly #identity: Identity;
  #bytes = 0;

  constructor(identity: Identity) {
    this.#identity = identity;
  }

  /** @throws LeatError `resource_exhausted` */
  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes <= IDENTITY_HELD_BYTES_MAX || !hasBound(this.#identity)) return;
    const { name } = this.#identity;
    throw new LeatError(
      "resource_exhausted",
      `All links of "${name}" together hold more than ${IDENTITY_HELD_BYTES_MAX} bytes of requests, which ` +
        "wait until it reads earlier answers",
    );
  }

  remove(bytes: number): void {
    this.#bytes -= bytes;
  }
}

/** A queue of frames that are not acknowledged yet. */
export class HeldFrames {
  readonly #memory: HeldMemory | undefined;
  readonly #frames = new Fifo<Uint8Array>();
  #last: Uint8Array | undefined;
  #bytes = 0;
  /** Bytes of a frame that was taken from the queue but still has unopened messages. */
  #openBytes = 0;

  /** @param memory counts these frames, too. Default: none. */
  constructor(memory?: HeldMemory) {
    this.#memory = memory;
  }

  get length(): number {
    return this.#frames.length;
  }

  /**
   * @throws LeatError `invalid_argument` for a sender that does not respect the window, and
   * `resource_exhausted` if links of its identity hold too much together.
   */
  push(frame: Uint8Array): void {
    this.#frames.push(frame);
    this.#last = frame;
    this.#bytes += frame.length;
    this.#memory?.add(frame.length + FRAME_MEMORY_BYTES);
    if (this.#bytes > HELD_BYTES_MAX) {
      throw malformed(`more than the window of ${WINDOW_BYTES} bytes unacknowledged`);
    }
  }

  shift(): Uint8Array | undefined {
    const frame = this.#frames.shift();
    if (frame === undefined) return undefined;
    if (this.#frames.length === 0) this.#last = undefined;
    this.#bytes -= frame.length;
    this.#memory?.remove(frame.length + FRAME_MEMORY_BYTES);
    return frame;
  }

  /**
   * Sets how many bytes of a partly opened frame are kept; 0 once all its messages are opened.
   * @throws LeatError `resource_exhausted` as `push` does.
   */
  keepOpen(bytes: number): void {
    const more = bytes - this.#openBytes;
    this.#openBytes = bytes;
    if (more > 0) this.#memory?.add(more);
    else this.#memory?.remove(-more);
  }

  /** The frame that came last. */
  get last(): Uint8Array | undefined {
    return this.#last;
  }

  clear(): void {
    this.keepOpen(0);
    while (this.shift() !== undefined);
  }
}
