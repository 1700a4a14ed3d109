/**
 * Lines of text files.
 */

import { LeatError } from "../../core/error.ts";
import { END } from "../iterator.ts";
import { AGAIN } from "../stepping.ts";
import type { ByteReader } from "./byte_reader.ts";
import type { FormatReader } from "./format_reader.ts";

/** Longest line, in bytes without its end. A longer one is an error, and the line after it is read. */
export const LINE_BYTES_MAX = 64 * 1024 * 1024;

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const BYTE_ORDER_MARK = "\ufeff";

/** One line, without its end, and where it stands. */
export interface Line {
  readonly text: string;
  /** From 1. */
  readonly number: number;
}

/**
 * Reads a file as UTF-8, line by line: `\n` and `\r\n` end a line and are left out, the last line needs no end, and a file that ends with
 * one has no empty line after it. What is not UTF-8 becomes U+FFFD; a byte order mark at the beginning of the file is left out.
 */
export class LineReader implements FormatReader {
  readonly #bytes: ByteReader;
  readonly #convert: (line: Line, path: string) => unknown;
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #number = 0;
  /** Bytes of the present line that were looked at and have no end in them. */
  #searched = 0;
  #skipping = false;

  /** @param convert makes an element of a line; `AGAIN` leaves the line out. What it throws costs the line. */
  constructor(bytes: ByteReader, convert: (line: Line, path: string) => unknown = textOf) {
    this.#bytes = bytes;
    this.#convert = convert;
  }

  get disposed(): boolean {
    return this.#bytes.closed;
  }

  step(): unknown {
    if (this.disposed) return END;
    const { buffer, start, available } = this.#bytes;
    const at = available > this.#searched ? buffer.indexOf(NEWLINE, start + this.#searched) : -1;
    // What lies in the buffer beyond the available bytes is from earlier chunks.
    if (at >= 0 && at < start + available) return this.#line(at - start, 1);
    this.#searched = available;
    if (this.#skipping || available > LINE_BYTES_MAX) this.#drop();
    const filled = this.#bytes.fill(this.#searched + 1);
    return filled instanceof Promise
      ? filled.then((available) => this.#filled(available))
      : this.#filled(filled);
  }

  close(): void {
    this.#bytes.close();
  }

  #filled(available: number): unknown {
    if (available > this.#searched) return AGAIN;
    if (this.disposed || (available === 0 && !this.#skipping)) return END;
    return this.#line(available, 0);
  }

  /** Gives up what is buffered of a line that is too long, so that memory does not grow with it. */
  #drop(): void {
    const wasSkipping = this.#skipping;
    this.#skipping = true;
    this.#searched = 0;
    this.#bytes.skip(this.#bytes.available);
    if (!wasSkipping) throw this.#tooLong();
  }

  #tooLong(): LeatError {
    const { path, stream, position } = this.#bytes;
    return new LeatError(
      "resource_exhausted",
      `Line ${
        this.#number + 1
      } of ${path} is longer than ${LINE_BYTES_MAX} bytes (LINE_BYTES_MAX): no end of line before ` +
        `byte ${position}${stream}.`,
      { details: { path, line: this.#number + 1 } },
    );
  }

  /** The next `length` bytes, followed by an end of `endBytes`. */
  #line(length: number, endBytes: number): unknown {
    const { buffer, start, path } = this.#bytes;
    this.#searched = 0;
    if (!this.#skipping && length > LINE_BYTES_MAX) {
      const error = this.#tooLong();
      this.#number++;
      this.#bytes.skip(length + endBytes);
      throw error;
    }
    this.#number++;
    if (this.#skipping) {
      this.#skipping = false;
      this.#bytes.skip(length + endBytes);
      return AGAIN;
    }
    const hasReturn = endBytes > 0 && length > 0 && buffer[start + length - 1] === CARRIAGE_RETURN;
    const stop = start + length - (hasReturn ? 1 : 0);
    let text = this.#decoder.decode(buffer.subarray(start, stop));
    if (this.#number === 1 && text.startsWith(BYTE_ORDER_MARK)) text = text.slice(1);
    this.#bytes.skip(length + endBytes);
    return this.#convert({ text, number: this.#number }, path);
  }
}

function textOf({ text }: Line): string {
  return text;
}
