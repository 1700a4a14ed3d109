/**
 * The sending half of a link between two processes: messages leave in the order in which they were
 * added. Small ones go through the pipe, several in one system call. Large ones go through slots.
 */
import { Fifo } from "../../core/fifo.ts";
import type { LinkLimits } from "../limits.ts";
import { WaterMarks } from "../water_marks.ts";
import {
  broken,
  freedFrame,
  HEADER_BYTES,
  PIPED_BYTES_MAX,
  pipedFrames,
  slotFrame,
} from "./frames.ts";
import { SLOTS } from "./slots.ts";
import { type ProcessStreams, writeQuietly } from "./streams.ts";

interface Queued {
  /** Written one after another. A message of several blocks is too long for the pipe. */
  readonly blocks: readonly Uint8Array[];
  readonly byteLength: number;
  /** Whether its memory can be reused once it has been written. */
  readonly isGivenAway: boolean;
}

interface OutboxEvents {
  /** The memory of a message that has been written. */
  recycle(buffer: ArrayBuffer): void;
  /** Nothing can be written any more. */
  failed(error: unknown): void;
}

/** Sends messages in order through a pipe and slots. */
export class ProcessOutbox {
  readonly #streams: ProcessStreams;
  readonly #events: OutboxEvents;
  readonly #marks: WaterMarks;
  readonly #queue = new Fifo<Queued>();
  /** The next message, taken from the queue to see whether it fits. */
  #first: Queued | undefined;
  readonly #freeSlots: number[];
  /** Whether the other process may keep slots. If so, messages in them do not count as buffered. */
  readonly #isLending: boolean;
  /** Bytes of messages in slots that the other process has not read. */
  readonly #inSlots = new Map<number, number>();
  #slotFreed: () => void = () => {};
  #isPumping = false;
  #isClosed = false;

  /** @param slots How many slots the other process reads. */
  constructor(limits: LinkLimits, streams: ProcessStreams, slots: number, events: OutboxEvents) {
    // The slot that was freed last is used first: its memory is in the processor's cache.
    this.#freeSlots = Array.from({ length: slots }, (_, slot) => slots - 1 - slot);
    this.#isLending = slots > SLOTS;
    this.#streams = streams;
    this.#events = events;
    this.#marks = new WaterMarks(limits);
  }

  /** Bytes of messages that are not yet written to the pipe, or not yet read from their slots. */
  get bytes(): number {
    return this.#marks.bytes;
  }

  ready(): Promise<void> {
    return this.#marks.ready();
  }

  add(blocks: readonly Uint8Array[], isGivenAway: boolean): void {
    const byteLength = blocks.reduce((sum, { length }) => sum + length, 0);
    this.#marks.add(byteLength);
    this.#queue.push({ blocks, byteLength, isGivenAway });
    if (!this.#isPumping) this.#pump();
  }

  /** The other process has read a slot of this process. */
  freed(slot: number): void {
    const bytes = this.#inSlots.get(slot);
    if (bytes === undefined) throw broken(`slot ${slot} freed, which holds no message`);
    this.#inSlots.delete(slot);
    this.#freeSlots.push(slot);
    this.#marks.remove(bytes);
    this.#slotFreed();
  }

  /** Tells the other process that this one has read a slot. */
  sendFreed(slot: number): void {
    writeQuietly(this.#streams.outgoing, freedFrame(slot));
  }

  /** Drops waiting messages, and writes `last`. */
  close(last: Uint8Array): void {
    this.#isClosed = true;
    this.#first = undefined;
    while (this.#queue.shift() !== undefined);
    writeQuietly(this.#streams.outgoing, pipedFrames([last]));
    this.#marks.release();
    this.#slotFreed();
  }

  async #pump(): Promise<void> {
    this.#isPumping = true;
    try {
      for (let first = this.#next(); first !== undefined; first = this.#next()) {
        const isPiped = first.byteLength <= PIPED_BYTES_MAX;
        const writing = isPiped ? this.#pipe(first) : this.#writeSlot(first);
        if (writing !== undefined) await writing;
        if (this.#isClosed) return;
      }
    } catch (error) {
      this.#events.failed(error);
    } finally {
      this.#isPumping = false;
    }
  }

  #next(): Queued | undefined {
    const next = this.#first ?? this.#queue.shift();
    this.#first = undefined;
    return next;
  }

  /** Writes a message, and those queued behind it that fit, in one system call. */
  #pipe({ blocks, byteLength }: Queued): void | Promise<void> {
    const messages = [...blocks];
    let messageBytes = byteLength;
    let frameBytes = HEADER_BYTES + byteLength;
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      frameBytes += HEADER_BYTES + next.byteLength;
      if (frameBytes > PIPED_BYTES_MAX) {
        this.#first = next;
        break;
      }
      messages.push(...next.blocks);
      messageBytes += next.byteLength;
    }
    const writing = this.#streams.outgoing.write(pipedFrames(messages));
    if (writing === undefined) this.#marks.remove(messageBytes);
    else return writing.then(() => this.#written(messageBytes));
  }

  #written(messageBytes: number): void {
    if (!this.#isClosed) this.#marks.remove(messageBytes);
  }

  async #writeSlot({ blocks, byteLength, isGivenAway }: Queued): Promise<void> {
    while (this.#freeSlots.length === 0) {
      await new Promise<void>((resolve) => this.#slotFreed = resolve);
      if (this.#isClosed) return;
    }
    const slot = this.#freeSlots.pop()!;
    const writing = this.#streams.outgoingSlots.write(slot, blocks);
    if (writing !== undefined) await writing;
    if (this.#isClosed) return;
    this.#inSlots.set(slot, this.#isLending ? 0 : byteLength);
    if (this.#isLending) this.#marks.remove(byteLength);
    const sending = this.#streams.outgoing.write(slotFrame(byteLength, slot));
    for (const { buffer } of isGivenAway ? blocks : []) {
      if (buffer instanceof ArrayBuffer) this.#events.recycle(buffer);
    }
    if (sending !== undefined) await sending;
  }
}
