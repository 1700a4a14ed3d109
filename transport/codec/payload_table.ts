/** The payloads of a received message, and the errors of a malformed one. */
import { uint32At } from "../../core/bytes.ts";
import { type FixedDType, TYPED_ARRAYS, type TypedArray } from "../../core/dtype.ts";
import { LeatError } from "../../core/error.ts";
import { PAYLOAD_ALIGNMENT, PAYLOAD_HEADER_BYTES, payloadStart, TOKEN } from "./format.ts";
import { type StructureBudget, VALUE_BYTES } from "./structure.ts";

/** The payloads of one message: their positions, and which of them the envelope has named. */
export class PayloadTable {
  readonly #bytes: Uint8Array;
  readonly #copy: boolean;
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #named: boolean[] = [];

  constructor(bytes: Uint8Array, position: number, copy: boolean, structure: StructureBudget) {
    this.#bytes = bytes;
    this.#copy = copy;
    while (position < bytes.length) {
      structure.spend(VALUE_BYTES);
      position = this.#readHeader(position);
    }
  }

  /** Records the payload whose padding begins at `position`; returns its end. */
  #readHeader(position: number): number {
    const bytes = this.#bytes;
    const start = payloadStart(position);
    if (start > bytes.length) {
      throw truncated(
        `the header of payload ${this.#starts.length}`,
        position,
        start,
        bytes.length,
      );
    }
    const header = start - PAYLOAD_HEADER_BYTES;
    for (let i = position; i < header; i++) {
      if (bytes[i] !== TOKEN.NIL) throw malformed(i, "padding is nil (0xc0)");
    }
    if (bytes[header] !== TOKEN.BIN32) {
      throw malformed(
        header,
        `a payload is a bin32 (0xc6) that begins at a multiple of ${PAYLOAD_ALIGNMENT} bytes`,
      );
    }
    const end = start + uint32At(bytes, header + 1);
    if (end > bytes.length) {
      throw truncated(`payload ${this.#starts.length}`, start, end, bytes.length);
    }
    this.#starts.push(start);
    this.#ends.push(end);
    this.#named.push(false);
    return end;
  }

  /** Whether each payload may use its whole buffer: it is a copy, or alone in the message's buffer. */
  get isAlone(): boolean {
    const { byteLength, buffer } = this.#bytes;
    return this.#copy || this.#starts.length === 1 && buffer.byteLength === byteLength;
  }

  /** The bytes of payload `index`, which the envelope names here, once. */
  bytes(index: number, at: number): Uint8Array {
    const start = this.#starts[index];
    if (start === undefined) {
      throw new LeatError(
        "data_loss",
        `byte ${at} names payload ${index} of a message that holds ${this.#starts.length}`,
      );
    }
    // If a payload could be used twice, a small message could cost any amount of work.
    if (this.#named[index]) throw malformed(at, `payload ${index} is named a second time`);
    this.#named[index] = true;
    const end = this.#ends[index]!;
    return this.#copy ? this.#bytes.slice(start, end) : this.#bytes.subarray(start, end);
  }

  array(index: number, dtype: FixedDType, at: number): TypedArray {
    const bytes = this.bytes(index, at);
    const constructor = TYPED_ARRAYS[dtype];
    const itemBytes = constructor.BYTES_PER_ELEMENT;
    if (bytes.length % itemBytes !== 0) {
      throw malformed(
        at,
        `payload ${index} of ${bytes.length} bytes is not a whole number of ${dtype} (${itemBytes} bytes each)`,
      );
    }
    const aligned = bytes.byteOffset % itemBytes === 0 ? bytes : bytes.slice();
    return new constructor(aligned.buffer, aligned.byteOffset, aligned.length / itemBytes);
  }

  /** Checks that the envelope has named every payload. */
  finish(): void {
    const index = this.#named.indexOf(false);
    if (index >= 0) throw malformed(this.#starts[index]!, `payload ${index} is never named`);
  }
}

export function truncated(what: string, start: number, end: number, present: number): LeatError {
  return new LeatError(
    "data_loss",
    `a message ends early: ${what} at byte ${start} needs ${end - start} bytes, ` +
      `${Math.max(0, present - start)} are there`,
    { details: { expectedBytes: end, presentBytes: present } },
  );
}

export function malformed(at: number, what: string): LeatError {
  return new LeatError("invalid_argument", `malformed message at byte ${at}: ${what}`);
}
