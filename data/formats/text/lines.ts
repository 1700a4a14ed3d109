/** Reads lines of text files. */
import { utf8Text } from "../../../core/bytes.ts";
import { LeatError } from "../../../core/error.ts";
import { then } from "../../../core/then.ts";
import { END } from "../../iterator.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import { ByteReader, READ_BYTES } from "../byte_reader.ts";
import type { FormatReader, ReadFrom, SourceFile } from "../format_reader.ts";

/** Limit of a line's bytes, without its end. Reading skips a longer line with an error. */
export const LINE_BYTES_MAX = 64 * 1024 * 1024;

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const BYTE_ORDER_MARK = "\ufeff";

/** Where a line is in its file. */
export interface LineLocation {
  /** From 1; `null` in later parts of a file, where the lines before are not counted. */
  readonly number: number | null;
  /** Offset of its first byte. */
  readonly offset: number;
}

/** One line, without its end. */
export interface Line extends LineLocation {
  readonly text: string;
}

export interface LinePosition {
  readonly offset: number;
  /** Number of lines before `offset`; `null` if they were not counted. */
  readonly number: number | null;
  /** Whether everything up to the next end of line is skipped. */
  readonly skipping: boolean;
  readonly ended: boolean;
}

const BEGINNING: LinePosition = { offset: 0, number: 0, skipping: false, ended: false };

/** Makes an element from a line; `AGAIN` skips the line. If it throws, the line is lost. */
export type LineConversion = (line: Line, path: string) => unknown;

/**
 * Reads a file as UTF-8, line by line. `\n` and `\r\n` end a line and are removed. The last line may
 * lack them; if it has them, no empty line follows. A line that is not UTF-8 is lost, with a
 * `data_loss` error. A byte order mark at the beginning of the file is removed.
 */
export class LineReader implements FormatReader {
  readonly #bytes: ByteReader;
  readonly #convert: LineConversion;
  readonly #stop: number;
  #number: number | null;
  /** Number of bytes of the current line that were searched and contain no end of line. */
  #searched = 0;
  #skipping: boolean;
  #ended: boolean;

  /**
   * @param bytes Must start at the offset of `from`.
   * @param stop Lines that begin at this offset or later are not read.
   */
  constructor(
    bytes: ByteReader,
    convert: LineConversion = ({ text }) => text,
    from = BEGINNING,
    stop = Infinity,
  ) {
    this.#bytes = bytes;
    this.#convert = convert;
    this.#stop = stop;
    this.#number = from.number;
    this.#skipping = from.skipping;
    this.#ended = from.ended;
  }

  get disposed(): boolean {
    return this.#bytes.closed;
  }

  step(): unknown {
    if (this.#ended || this.disposed) return END;
    const { start, available, position } = this.#bytes;
    // While it skips, the next line begins after the searched bytes, which have no end of line.
    if (position + (this.#skipping ? this.#searched : 0) >= this.#stop) return END;
    const at = available > this.#searched ? this.#find(start + this.#searched) : -1;
    // Beyond the available bytes the buffer holds old data.
    if (at >= 0 && at < start + available) return this.#line(at - start, 1);
    this.#searched = available;
    if (this.#skipping || available > LINE_BYTES_MAX) this.#drop();
    this.#ended = true; // unless the file continues
    return then(this.#bytes.fill(this.#searched + 1), (available) => this.#filled(available));
  }

  save(): LinePosition {
    return {
      offset: this.#bytes.position,
      number: this.#number,
      skipping: this.#skipping,
      ended: this.#ended && !this.#bytes.hasFailed,
    };
  }

  close(): void {
    this.#bytes.close();
  }

  #filled(available: number): unknown {
    if (available > this.#searched) {
      this.#ended = false;
      return AGAIN;
    }
    if (this.disposed || (available === 0 && !this.#skipping)) return END;
    return this.#line(available, 0);
  }

  /**
   * Returns the index of the next end of line from `from` on. It may be in old data after the available
   * bytes.
   */
  #find(from: number): number {
    const { buffer, start, available } = this.#bytes;
    // A long line makes the buffer large, and each chunk of the line must not search all of the buffer.
    const searched = buffer.length > READ_BYTES ? buffer.subarray(0, start + available) : buffer;
    return searched.indexOf(NEWLINE, from);
  }

  /** Drops the buffered part of a line that is too long, so that memory does not grow with the line. */
  #drop(): void {
    const wasSkipping = this.#skipping;
    this.#skipping = true;
    this.#searched = 0;
    this.#bytes.skip(this.#bytes.available);
    if (!wasSkipping) throw this.#tooLong();
  }

  #tooLong(): LeatError {
    const { path, stream, position } = this.#bytes;
    const line = this.#number === null ? "A line" : `Line ${this.#number + 1}`;
    return new LeatError(
      "resource_exhausted",
      `${line} of ${path} is longer than ${LINE_BYTES_MAX} bytes (LINE_BYTES_MAX): no end of line ` +
        `before byte ${position}${stream}.`,
      { details: { path, line: this.#number === null ? null : this.#number + 1 } },
    );
  }

  /** Takes a line of `length` bytes, whose end has `endBytes` bytes, and returns its element. */
  #line(length: number, endBytes: number): unknown {
    const { buffer, start, path, position } = this.#bytes;
    this.#searched = 0;
    if (!this.#skipping && length > LINE_BYTES_MAX) {
      const error = this.#tooLong();
      if (this.#number !== null) this.#number++;
      this.#bytes.skip(length + endBytes);
      throw error;
    }
    if (this.#number !== null) this.#number++;
    if (this.#skipping) {
      this.#skipping = false;
      this.#bytes.skip(length + endBytes);
      return AGAIN;
    }
    const hasReturn = endBytes > 0 && length > 0 && buffer[start + length - 1] === CARRIAGE_RETURN;
    const stop = start + length - (hasReturn ? 1 : 0);
    let text = utf8Text(buffer.subarray(start, stop));
    this.#bytes.skip(length + endBytes);
    if (text === undefined) throw notUtf8({ number: this.#number, offset: position }, this.#bytes);
    if (position === 0 && text.startsWith(BYTE_ORDER_MARK)) text = text.slice(1);
    return this.#convert({ text, number: this.#number, offset: position }, path);
  }
}

/**
 * Opens the lines of a file, or the lines that begin in one of its parts of `partBytes` bytes.
 *
 * @param first Where the lines begin in a file that starts with something else, such as a header.
 */
export function openLines(
  source: SourceFile,
  { part, position }: ReadFrom,
  partBytes: number,
  convert?: LineConversion,
  first = BEGINNING,
): LineReader {
  const stop = part === undefined ? Infinity : (part + 1) * partBytes;
  const from = position as LinePosition | undefined ?? startOf(part ?? 0, partBytes, first);
  if (part !== undefined) source.file.expect?.(from.offset, stop);
  return new LineReader(ByteReader.of(source, from.offset), convert, from, stop);
}

/**
 * Returns the position from which a part is read. The part's first line is the first that begins in it.
 * Reading starts one byte before the part, because that byte may end the line before.
 */
function startOf(part: number, partBytes: number, first: LinePosition): LinePosition {
  const start = part * partBytes;
  return start <= first.offset
    ? first
    : { offset: start - 1, number: null, skipping: true, ended: false };
}

/** What to do about a line that is not UTF-8, unless the file should be decompressed. */
const CONVERT = ' Convert the file, as with "iconv -f WINDOWS-1252 -t UTF-8".';

/** The error of a line that is not UTF-8. */
export function notUtf8(line: LineLocation, { path, remedy }: ByteReader): LeatError {
  return new LeatError(
    "data_loss",
    `${describeLine(line, path)} is not UTF-8.${remedy === "" ? CONVERT : remedy}`,
    { details: lineDetails(line, path) },
  );
}

/** Names a line in messages. */
export function describeLine({ number, offset }: LineLocation, path: string): string {
  return number === null ? `The line at byte ${offset} of ${path}` : `Line ${number} of ${path}`;
}

/** The location of a line, for an error's details. */
export function lineDetails(
  { number, offset }: LineLocation,
  path: string,
): Record<string, unknown> {
  return { path, offset, ...(number === null ? {} : { line: number }) };
}
