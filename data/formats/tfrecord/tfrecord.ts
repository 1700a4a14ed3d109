/**
 * Reads and writes TFRecord files. A record is `uint64 length`, `uint32 masked CRC-32C of the
 * length`, the data, `uint32 masked CRC-32C of the data`, all little-endian. A file consists of
 * records and nothing else.
 */
import { LeatError, type LeatErrorCode } from "../../../core/error.ts";
import { END } from "../../iterator.ts";
import type { ByteReader } from "../byte_reader.ts";
import { maskedCrc32c } from "./crc32c.ts";
import type { FormatReader } from "../format_reader.ts";

/** Limit of a record's bytes. A larger record is refused before memory is allocated for it. */
export const RECORD_BYTES_MAX = 1024 * 1024 * 1024;

const LENGTH_BYTES = 8;
const CRC_BYTES = 4;
const HEADER_BYTES = LENGTH_BYTES + CRC_BYTES;

/**
 * Encodes one record of a TFRecord file: data with its length and two checksums. Concatenated records
 * are a file for {@linkcode Dataset.tfRecords}.
 *
 * @throws {LeatError} `invalid_argument` for data longer than 1 GiB.
 *
 * @example
 * ```ts
 * import { encodeTfRecord } from "./tfrecord.ts";
 * const text = new TextEncoder();
 * const file = new Blob([encodeTfRecord(text.encode("one")), encodeTfRecord(text.encode("two"))]);
 * console.log(file.size); // 38: each record has 16 bytes of framing
 * ```
 */
export function encodeTfRecord(data: Uint8Array): Uint8Array<ArrayBuffer> {
  if (data.length > RECORD_BYTES_MAX) {
    throw new LeatError(
      "invalid_argument",
      `A record of ${data.length} bytes is longer than ${RECORD_BYTES_MAX} (RECORD_BYTES_MAX).`,
    );
  }
  const record = new Uint8Array(HEADER_BYTES + data.length + CRC_BYTES);
  const view = new DataView(record.buffer);
  view.setBigUint64(0, BigInt(data.length), true);
  view.setUint32(LENGTH_BYTES, maskedCrc32c(record, 0, LENGTH_BYTES), true);
  record.set(data, HEADER_BYTES);
  const stop = HEADER_BYTES + data.length;
  view.setUint32(stop, maskedCrc32c(record, HEADER_BYTES, stop), true);
  return record;
}

export interface RecordPosition {
  readonly offset: number;
  readonly ended: boolean;
}

/**
 * Reads the records of a file in order, each copied.
 *
 * Damage is `data_loss` with the file, the record's offset and the reason. Reading continues after a
 * record with damaged data. It ends at a damaged length, or if the file ends within a record.
 */
export class RecordReader implements FormatReader {
  readonly #bytes: ByteReader;
  /** A view of the reader's buffer. */
  #view: DataView | undefined;
  /** Offset of the record of the last step. */
  #start = 0;
  #ended: boolean;

  /** @param ended Whether the saved reader had already ended. */
  constructor(bytes: ByteReader, ended = false) {
    this.#bytes = bytes;
    this.#ended = ended;
  }

  get disposed(): boolean {
    return this.#bytes.closed;
  }

  step(): unknown {
    if (this.#ended) return END;
    this.#start = this.#bytes.position;
    this.#ended = true; // unless another record follows
    const filled = this.#bytes.fill(HEADER_BYTES);
    return filled instanceof Promise ? this.#headerLater(filled) : this.#readHeader(filled);
  }

  save(): RecordPosition {
    const { position, hasFailed } = this.#bytes;
    return hasFailed
      ? { offset: this.#start, ended: false }
      : { offset: position, ended: this.#ended };
  }

  close(): void {
    this.#bytes.close();
  }

  async #headerLater(filled: Promise<number>): Promise<unknown> {
    return await this.#readHeader(await filled);
  }

  #readHeader(available: number): unknown {
    if (available === 0 || this.disposed) return END;
    const offset = this.#bytes.position;
    if (available < HEADER_BYTES) {
      throw this.#damage("data_loss", offset, `it ends ${available} bytes into a record's header`);
    }
    const length = this.#length(offset);
    this.#bytes.skip(HEADER_BYTES);
    const { remaining } = this.#bytes;
    if (remaining < length + CRC_BYTES) throw this.#truncated(offset, length, remaining);
    const data = this.#bytes.takeCopy(length);
    return data instanceof Promise
      ? data.then((data) => this.#readData(offset, length, data))
      : this.#readData(offset, length, data);
  }

  /** Reads the length of the next record, and verifies its checksum. */
  #length(offset: number): number {
    const { buffer, start } = this.#bytes;
    if (this.#view?.buffer !== buffer.buffer) this.#view = new DataView(buffer.buffer);
    const view = this.#view;
    const stored = view.getUint32(start + LENGTH_BYTES, true);
    const computed = maskedCrc32c(buffer, start, start + LENGTH_BYTES);
    if (computed !== stored) {
      throw this.#damage("data_loss", offset, mismatch("length", stored, computed), "length");
    }
    const length = view.getUint32(start + 4, true) * 2 ** 32 + view.getUint32(start, true);
    if (length > RECORD_BYTES_MAX) {
      throw this.#damage(
        "resource_exhausted",
        offset,
        `a record claims ${length} bytes, more than ${RECORD_BYTES_MAX} (RECORD_BYTES_MAX)`,
      );
    }
    return length;
  }

  #readData(offset: number, length: number, data: Uint8Array): unknown {
    if (this.disposed) return END;
    if (data.length < length) throw this.#truncated(offset, length, data.length);
    const filled = this.#bytes.fill(CRC_BYTES);
    return filled instanceof Promise
      ? filled.then((available) => this.#checkData(offset, data, available))
      : this.#checkData(offset, data, filled);
  }

  /** Checks and skips the checksum of the data. Reading continues after a mismatch. */
  #checkData(offset: number, data: Uint8Array, available: number): Uint8Array | typeof END {
    if (this.disposed) return END;
    if (available < CRC_BYTES) throw this.#truncated(offset, data.length, data.length + available);
    const computed = maskedCrc32c(data);
    const { buffer, start } = this.#bytes;
    const stored = (buffer[start]! | buffer[start + 1]! << 8 | buffer[start + 2]! << 16 |
      buffer[start + 3]! << 24) >>> 0;
    this.#bytes.skip(CRC_BYTES);
    this.#ended = false;
    if (computed !== stored) {
      throw this.#damage("data_loss", offset, mismatch("data", stored, computed), "data");
    }
    return data;
  }

  #truncated(offset: number, length: number, remaining: number): LeatError {
    return this.#damage(
      "data_loss",
      offset,
      `a record of ${length} bytes is truncated, ${remaining} of ${
        length + CRC_BYTES
      } bytes are left`,
    );
  }

  #damage(code: LeatErrorCode, offset: number, what: string, crc?: "length" | "data"): LeatError {
    const { path, stream, remedy } = this.#bytes;
    return new LeatError(
      code,
      `Damaged TFRecord file ${path} at byte ${offset}${stream}: ${what}.${remedy}`,
      { details: { path, offset, ...(crc === undefined ? {} : { crc }) } },
    );
  }
}

function mismatch(what: string, stored: number, computed: number): string {
  return `the CRC of a record's ${what} is stored as ${hex(stored)} but comes to ${hex(computed)}`;
}

function hex(crc: number): string {
  return `0x${crc.toString(16).padStart(8, "0")}`;
}
