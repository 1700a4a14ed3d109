/**
 * The frames in a pipe between two processes: headers, each followed by its message or naming the
 * slot that holds it. `docs/wire.md` specifies the format.
 */
import { LeatError } from "../../core/error.ts";
import { LENT_SLOTS_MAX, SLOT_BYTES_MAX, SLOTS } from "./slots.ts";
import type { PipeReader } from "./streams.ts";

/** A longer message goes through a slot. */
export const PIPED_BYTES_MAX = 64 * 2 ** 10;

/** Before a message: its length and its slot. */
export const HEADER_BYTES = 8;
/** In place of a slot's number: the message follows in the pipe. */
const PIPED = 0xffff_ffff;
/** Added to a slot's number: its message was read, and the slot may be reused. The length is 0. */
const FREED = 0x8000_0000;

export interface Header {
  readonly kind: "piped" | "slot" | "freed";
  /** Of the message, in bytes. */
  readonly length: number;
  /** The slot; -1 if the message follows in the pipe. */
  readonly slot: number;
}

/** Messages that go through the pipe, each after its header, in one block. */
export function pipedFrames(messages: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(
    messages.reduce((sum, { length }) => sum + HEADER_BYTES + length, 0),
  );
  let at = 0;
  for (const message of messages) {
    writeHeader(whole, at, message.length, PIPED);
    whole.set(message, at + HEADER_BYTES);
    at += HEADER_BYTES + message.length;
  }
  return whole;
}

export function slotFrame(length: number, slot: number): Uint8Array {
  const frame = new Uint8Array(HEADER_BYTES);
  writeHeader(frame, 0, length, slot);
  return frame;
}

export function freedFrame(slot: number): Uint8Array {
  return slotFrame(0, FREED + slot);
}

/** @throws {LeatError} `internal` for a header that violates the protocol. */
export function readHeader(bytes: Uint8Array): Header {
  const view = new DataView(bytes.buffer, bytes.byteOffset, HEADER_BYTES);
  const length = view.getUint32(0, true);
  const place = view.getUint32(4, true);
  if (place === PIPED) {
    if (length > PIPED_BYTES_MAX) throw broken(`a piped message of ${length} bytes`);
    return { kind: "piped", length, slot: -1 };
  }
  if (length === 0 && place >= FREED && place < FREED + LENT_SLOTS_MAX) {
    return { kind: "freed", length, slot: place - FREED };
  }
  if (place >= SLOTS || length > SLOT_BYTES_MAX) {
    throw broken(`a message of ${length} bytes in slot ${place}`);
  }
  return { kind: "slot", length, slot: place };
}

/** Cuts the bytes of a pipe into pieces of known lengths. */
export class PipeInput {
  readonly #pipe: PipeReader;
  #chunk: Uint8Array = new Uint8Array(0);

  constructor(pipe: PipeReader) {
    this.#pipe = pipe;
  }

  /** `length` bytes, to be used before the next call; `undefined` at the end of the pipe. */
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

/** The error of a link whose other end violates the protocol. */
export function broken(by: string): LeatError {
  return new LeatError("internal", `The other process violated its protocol: ${by}`);
}

function writeHeader(target: Uint8Array, at: number, length: number, place: number): void {
  const view = new DataView(target.buffer, target.byteOffset + at, HEADER_BYTES);
  view.setUint32(0, length, true);
  view.setUint32(4, place, true);
}
