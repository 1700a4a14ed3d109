/** The sending half of a link: chooses the next frames for the socket, and limits them. */
import { Fifo } from "../../core/fifo.ts";
import type { LinkLimits } from "../limits.ts";
import { WaterMarks } from "../water_marks.ts";
import {
  BATCH_BYTES_MAX,
  BATCHED_MESSAGE_BYTES_MAX,
  FRAGMENT_BYTES,
  fragmentHead,
  malformed,
  WHOLE_BYTES_MAX,
  writeBatch,
} from "./frames.ts";

/**
 * No frame begins while the receiver has this many bytes to consume. This bounds what both machines
 * hold for a slow receiver.
 */
export const WINDOW_BYTES = 8 * 2 ** 20;

/** A large message, or a later message of the same pair (sender, receiver) that must wait for it. */
interface Held {
  readonly message: Uint8Array;
  readonly pair: string;
  /** How many frames of the direct lane must be sent before it: those that were added before it. */
  readonly after: number;
  offset: number;
}

/** A frame that the receiver has not consumed yet. */
interface InFlight {
  /** Bytes of frames up to its end since the link began. */
  readonly end: number;
  readonly messageBytes: number;
}

/** Sends a frame: `head`, if there is one, and `bytes`. */
type Put = (bytes: Uint8Array, head?: Uint8Array) => void;

interface Frame {
  readonly bytes: Uint8Array;
  readonly messageBytes: number;
}

/**
 * Two lanes lead to the socket. Most messages use the direct one, small ones gathered into batches.
 * Large messages go in fragments through the other, which alternates with the direct one; later
 * messages of the same pair queue after them, which keeps the order within a pair.
 */
export class Outbox {
  readonly #put: Put;
  readonly #flushSoon: (flush: () => void) => void;
  readonly #marks: WaterMarks;
  readonly #direct = new Fifo<Frame>();
  readonly #held = new Fifo<Held>();
  /** The number of held messages of each pair. */
  readonly #heldPairs = new Map<string, number>();
  readonly #inFlight = new Fifo<InFlight>();
  #oldest: InFlight | undefined;
  #batch: Uint8Array[] = [];
  #batchBytes = 0;
  #current: Held | undefined;
  #heldTurn = false;
  #directIn = 0;
  #directOut = 0;
  #lastId = 0;
  #bytesSent = 0;
  #bytesAcknowledged = 0;
  #closed = false;

  /**
   * @param put hands a frame to the socket, in one or two parts.
   * @param flushSoon calls back after the sender's message handling.
   */
  constructor(
    limits: LinkLimits,
    put: Put,
    flushSoon: (flush: () => void) => void,
  ) {
    this.#marks = new WaterMarks(limits);
    this.#put = put;
    this.#flushSoon = flushSoon;
  }

  /** Bytes of messages that the receiver has not consumed yet. */
  get bytes(): number {
    return this.#marks.bytes;
  }

  ready(): Promise<void> {
    return this.#marks.ready();
  }

  /** Adds a message, which must not change any more. Order is kept per pair, named by `pairOf`. */
  add(message: Uint8Array, pairOf: () => string): void {
    this.#marks.add(message.length);
    if (message.length > WHOLE_BYTES_MAX) {
      this.#closeBatch();
      this.#hold(message, pairOf());
    } else if (this.#heldPairs.size > 0 && this.#heldPairs.has(pairOf())) {
      this.#hold(message, pairOf());
    } else if (message.length <= BATCHED_MESSAGE_BYTES_MAX) {
      this.#gather(message);
      return;
    } else {
      this.#closeBatch();
      this.#queue({ bytes: message, messageBytes: message.length });
    }
    this.#pump();
  }

  /** Notes that the receiver has consumed `bytes` bytes of frames since the link began. */
  acknowledge(bytes: number): void {
    if (!(bytes >= this.#bytesAcknowledged && bytes <= this.#bytesSent)) {
      throw malformed(
        `an acknowledgement of ${bytes} bytes after one of ${this.#bytesAcknowledged}; ${this.#bytesSent} were sent`,
      );
    }
    this.#bytesAcknowledged = bytes;
    let oldest = this.#oldest ?? this.#inFlight.shift();
    while (oldest !== undefined && oldest.end <= bytes) {
      this.#marks.remove(oldest.messageBytes);
      oldest = this.#inFlight.shift();
    }
    this.#oldest = oldest;
    this.#pump();
  }

  /** Drops unsent messages: the link is closed. */
  close(): void {
    this.#closed = true;
    this.#batch = [];
    while (this.#direct.shift() !== undefined);
    while (this.#held.shift() !== undefined);
    while (this.#inFlight.shift() !== undefined);
    this.#oldest = undefined;
    this.#current = undefined;
    this.#heldPairs.clear();
    this.#marks.release();
  }

  #gather(message: Uint8Array): void {
    this.#batch.push(message);
    this.#batchBytes += message.length;
    if (this.#batchBytes >= BATCH_BYTES_MAX) {
      this.#closeBatch();
      this.#pump();
    } else if (this.#batch.length === 1) {
      this.#flushSoon(() => {
        this.#closeBatch();
        this.#pump();
      });
    }
  }

  #closeBatch(): void {
    const batch = this.#batch;
    if (batch.length === 0) return;
    const bytes = batch.length === 1 ? batch[0]! : writeBatch(batch);
    this.#queue({ bytes, messageBytes: this.#batchBytes });
    this.#batch = [];
    this.#batchBytes = 0;
  }

  #queue(frame: Frame): void {
    this.#direct.push(frame);
    this.#directIn++;
  }

  #hold(message: Uint8Array, pair: string): void {
    const held = { message, pair, after: this.#directIn, offset: 0 };
    this.#heldPairs.set(pair, (this.#heldPairs.get(pair) ?? 0) + 1);
    if (this.#current === undefined) this.#current = held;
    else this.#held.push(held);
  }

  #pump(): void {
    while (
      !this.#closed && this.#bytesSent - this.#bytesAcknowledged < WINDOW_BYTES && this.#next()
    );
  }

  /** Sends the next frame; false if there is none. */
  #next(): boolean {
    const held = this.#current;
    const heldMayGo = held !== undefined && this.#directOut >= held.after;
    if (heldMayGo && (this.#heldTurn || this.#direct.length === 0)) {
      this.#heldTurn = false;
      this.#sendHeld(held);
      return true;
    }
    this.#heldTurn = true;
    const frame = this.#direct.shift();
    if (frame === undefined) return false;
    this.#directOut++;
    this.#send(frame.bytes, frame.messageBytes);
    return true;
  }

  #sendHeld(held: Held): void {
    const { message, offset } = held;
    if (message.length <= WHOLE_BYTES_MAX) {
      this.#send(message, message.length);
      this.#sentHeld(held);
      return;
    }
    if (offset === 0) this.#lastId = (this.#lastId + 1) >>> 0;
    const byteLength = Math.min(FRAGMENT_BYTES, message.length - offset);
    const part = message.subarray(offset, offset + byteLength);
    this.#send(part, byteLength, fragmentHead(this.#lastId, offset, message.length));
    held.offset += byteLength;
    if (held.offset === message.length) this.#sentHeld(held);
  }

  #sentHeld({ pair }: Held): void {
    const left = this.#heldPairs.get(pair)! - 1;
    if (left === 0) this.#heldPairs.delete(pair);
    else this.#heldPairs.set(pair, left);
    this.#current = this.#held.shift();
  }

  #send(bytes: Uint8Array, messageBytes: number, head?: Uint8Array): void {
    this.#bytesSent += bytes.length + (head?.length ?? 0);
    this.#inFlight.push({ end: this.#bytesSent, messageBytes });
    this.#put(bytes, head);
  }
}
