/**
 * Messages between a process and one that it has started: small ones through the pipes of standard
 * input and output, large ones through slots of a shared file. Everything that arrives is bytes that
 * a stranger may have written; the codec and the limits here decide what becomes a message.
 * `docs/wire.md` has the format.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { decodeMessage, encodeMessage } from "../codec.ts";
import { SLOT_BYTES_MAX, type SlotFile, SLOTS } from "./slots.ts";

/** A longer message goes through a slot. */
export const PIPED_BYTES_MAX = 64 * 2 ** 10;
/** Largest envelope that is read from an untrusted process: bulk data travels as payloads. */
export const UNTRUSTED_ENVELOPE_BYTES_MAX = 2 ** 20;

/** Before a message: its length and the slot that it is in. */
const HEADER_BYTES = 8;
/** In the place of a slot: the message follows in the pipe. */
const PIPED = 0xffff_ffff;
/** Added to a slot: its message was read, and it may be written again. The length is 0. */
const FREED = 0x8000_0000;
/** Left free before a message from a slot, so that its payload can travel on without a copy. */
const ROOM_BYTES = 1_024;

/** The reading end of a pipe. */
export interface PipeReader {
  /** The bytes that come next, to be used before the next call; `undefined` at the end. */
  read(): Promise<Uint8Array | undefined>;
  close(): void;
}

/** The writing end of a pipe. */
export interface PipeWriter {
  /** Resolves when there is room for more. */
  write(bytes: Uint8Array): void | Promise<void>;
  close(): void;
}

/** The two pipes and the two slot files between two processes. */
export interface ProcessStreams {
  readonly incoming: PipeReader;
  readonly outgoing: PipeWriter;
  /** The file that this process reads. */
  readonly incomingSlots: SlotFile;
  /** The file that this process writes. */
  readonly outgoingSlots: SlotFile;
}

/** Takes a message, and how many bytes it was. */
export type Receive = (message: unknown, byteLength: number) => void;

/** How a {@linkcode ProcessChannel} reads. */
export interface ProcessChannelOptions {
  /** Longest envelope that is decoded, in bytes. Default: as long as a message may be. */
  readonly envelopeBytesMax?: number;
}

/** A message that is to be written. */
interface Queued {
  readonly bytes: Uint8Array;
  /** Called when it has been, or never will be. */
  readonly written: () => void;
}

/** One end of the channel between two processes. Messages arrive in the order of their sending. */
export class ProcessChannel {
  /** Settles once, when the channel is closed, breaks, or the other process has closed its end. */
  readonly closed: Promise<LeatError>;
  readonly #close: (why: LeatError) => void;
  readonly #streams: ProcessStreams;
  readonly #envelopeBytesMax: number;
  readonly #freeSlots = Array.from({ length: SLOTS }, (_, slot) => slot);
  readonly #queue: Queued[] = [];
  #isPumping = false;
  /** Settles when the pump stops. */
  #flushed = Promise.withResolvers<void>();
  #isClosed = false;
  #slotFreed: () => void = () => {};

  constructor(
    streams: ProcessStreams,
    { envelopeBytesMax = Infinity }: ProcessChannelOptions = {},
  ) {
    this.#streams = streams;
    this.#envelopeBytesMax = envelopeBytesMax;
    const { promise, resolve } = Promise.withResolvers<LeatError>();
    this.closed = promise;
    this.#close = resolve;
  }

  /**
   * Begins to read; called once.
   *
   * @param receive Called with each message and its size in bytes. What it throws closes the channel.
   */
  async start(receive: Receive): Promise<void> {
    try {
      await this.#read(receive);
      this.close(new LeatError("unavailable", "The other process has closed its end"));
    } catch (error) {
      this.close(LeatError.from(error));
    }
  }

  /**
   * Sends a message: plain data with typed arrays, tensors and payloads. A payload that was encoded
   * with room for an envelope is not copied, and must not be used afterwards.
   *
   * @returns Resolves when the message has been written, or never will be.
   * @throws {LeatError} `invalid_argument` for what is not plain data, `resource_exhausted` for a
   * message that is too large.
   */
  send(message: unknown): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    const bytesMax = SLOT_BYTES_MAX;
    const bytes = encodeMessage(message, { bytesMax, inPlaceBytesMax: bytesMax });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#queue.push({ bytes, written: resolve });
    if (!this.#isPumping) this.#pump();
    return promise;
  }

  /** Resolves when everything that was sent has been written, or the channel is closed. */
  flushed(): Promise<void> {
    return this.#isPumping ? this.#flushed.promise : Promise.resolve();
  }

  /** Closes the channel and its files. Idempotent. */
  close(why: LeatError = new LeatError("cancelled", "The channel was closed")): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const { written } of this.#queue.splice(0)) written();
    this.#slotFreed();
    this.#streams.incomingSlots[Symbol.dispose]();
    this.#streams.outgoingSlots[Symbol.dispose]();
    this.#streams.incoming.close();
    this.#streams.outgoing.close();
    this.#close(why);
  }

  async #pump(): Promise<void> {
    this.#isPumping = true;
    try {
      for (let first = this.#queue.shift(); first !== undefined; first = this.#queue.shift()) {
        const isPiped = first.bytes.length <= PIPED_BYTES_MAX;
        const messages = isPiped ? [first, ...this.#pipedNext(first)] : [first];
        const writing = isPiped ? this.#pipe(messages) : this.#writeSlot(first.bytes);
        if (writing !== undefined) await writing;
        for (const { written } of messages) written();
      }
    } catch (error) {
      this.close(LeatError.from(error));
    }
    this.#isPumping = false;
    this.#flushed.resolve();
    this.#flushed = Promise.withResolvers();
  }

  /** What waits behind a piped message and goes with it, in one call of the system. */
  #pipedNext({ bytes }: Queued): Queued[] {
    let byteLength = HEADER_BYTES + bytes.length;
    let count = 0;
    for (const next of this.#queue) {
      byteLength += HEADER_BYTES + next.bytes.length;
      if (byteLength > PIPED_BYTES_MAX) break;
      count++;
    }
    return this.#queue.splice(0, count);
  }

  #pipe(messages: readonly Queued[]): void | Promise<void> {
    const whole = new Uint8Array(
      messages.reduce((sum, { bytes }) => sum + HEADER_BYTES + bytes.length, 0),
    );
    let at = 0;
    for (const { bytes } of messages) {
      writeHeader(whole, at, bytes.length, PIPED);
      whole.set(bytes, at + HEADER_BYTES);
      at += HEADER_BYTES + bytes.length;
    }
    return this.#streams.outgoing.write(whole);
  }

  async #writeSlot(bytes: Uint8Array): Promise<void> {
    while (this.#freeSlots.length === 0) {
      await new Promise<void>((resolve) => this.#slotFreed = resolve);
      if (this.#isClosed) return;
    }
    const slot = this.#freeSlots.pop()!;
    const writing = this.#streams.outgoingSlots.write(slot, bytes);
    if (writing !== undefined) await writing;
    if (!this.#isClosed) await this.#streams.outgoing.write(headerOf(bytes.length, slot));
  }

  async #read(receive: Receive): Promise<void> {
    const input = new Input(this.#streams.incoming);
    for (;;) {
      const taken = input.take(HEADER_BYTES);
      const header = taken instanceof Promise ? await taken : taken;
      if (header === undefined || this.#isClosed) return;
      const view = new DataView(header.buffer, header.byteOffset, HEADER_BYTES);
      const length = view.getUint32(0, true);
      const place = view.getUint32(4, true);
      const isFreed = place >= FREED && place < FREED + SLOTS;
      if (isFreed && length === 0) this.#free(place - FREED);
      else receive(await this.#message(input, length, place), length);
    }
  }

  async #message(input: Input, length: number, place: number): Promise<unknown> {
    if (place === PIPED) {
      if (length > PIPED_BYTES_MAX) throw broken(`a piped message of ${length} bytes`);
      const bytes = await input.take(length);
      if (bytes === undefined) throw broken("the end amid a message");
      // Alone in its buffer, where payloads are aligned.
      return this.#decoded(bytes.slice());
    }
    if (place >= SLOTS || length > SLOT_BYTES_MAX) {
      throw broken(`a message of ${length} bytes in slot ${place}`);
    }
    const bytes = new Uint8Array(new ArrayBuffer(ROOM_BYTES + length), ROOM_BYTES);
    const reading = this.#streams.incomingSlots.read(place, bytes);
    if (reading !== undefined) await reading;
    // A pipe that is broken is reported by its reading end.
    Promise.resolve(this.#streams.outgoing.write(headerOf(0, FREED + place))).catch(() => {});
    return this.#decoded(bytes);
  }

  #decoded(bytes: Uint8Array): unknown {
    const envelopeBytes = bytes.length < 5
      ? 0
      : new DataView(bytes.buffer, bytes.byteOffset).getUint32(1);
    if (envelopeBytes > this.#envelopeBytesMax) {
      throw broken(`an envelope of ${envelopeBytes} bytes, over ${this.#envelopeBytesMax}`);
    }
    return decodeMessage(bytes, { bytesMax: SLOT_BYTES_MAX });
  }

  #free(slot: number): void {
    if (this.#freeSlots.includes(slot)) throw broken(`slot ${slot} freed twice`);
    this.#freeSlots.push(slot);
    this.#slotFreed();
  }
}

/** Cuts what comes through a pipe into pieces of known lengths. */
class Input {
  readonly #pipe: PipeReader;
  #chunk: Uint8Array = new Uint8Array(0);

  constructor(pipe: PipeReader) {
    this.#pipe = pipe;
  }

  /** So many bytes, to be used before the next call; `undefined` at the end of the pipe. */
  take(length: number): Uint8Array | undefined | Promise<Uint8Array | undefined> {
    if (this.#chunk.length < length) return this.#gather(length);
    const taken = this.#chunk.subarray(0, length);
    this.#chunk = this.#chunk.subarray(length);
    return taken;
  }

  async #gather(length: number): Promise<Uint8Array | undefined> {
    const gathered = new Uint8Array(length);
    let at = 0;
    for (;;) {
      const part = this.#chunk.subarray(0, length - at);
      gathered.set(part, at);
      at += part.length;
      this.#chunk = this.#chunk.subarray(part.length);
      if (at === length) return gathered;
      const chunk = await this.#pipe.read();
      if (chunk === undefined) return undefined;
      this.#chunk = chunk;
    }
  }
}

function headerOf(length: number, place: number): Uint8Array {
  const header = new Uint8Array(HEADER_BYTES);
  writeHeader(header, 0, length, place);
  return header;
}

function writeHeader(target: Uint8Array, at: number, length: number, place: number): void {
  const view = new DataView(target.buffer, target.byteOffset + at, HEADER_BYTES);
  view.setUint32(0, length, true);
  view.setUint32(4, place, true);
}

function broken(by: string): LeatError {
  return new LeatError("internal", `The other process broke the rules of its channel: ${by}`);
}
