/** Reads CSV files with quoted fields, which may contain delimiters, quotes and ends of line. */
import { Parser } from "csv-parse";
import { LeatError, type LeatErrorCode } from "../../../core/error.ts";
import { then } from "../../../core/then.ts";
import { END } from "../../iterator.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import type { ByteReader } from "../byte_reader.ts";
import { COLUMNS_MAX } from "../column_rows.ts";
import type { RecordConversion } from "./csv_columns.ts";
import type { FormatReader } from "../format_reader.ts";
import { notUtf8 } from "../text/lines.ts";

/**
 * Limit of a record's bytes. Reading stops at a longer record, whose quote was usually never closed.
 */
const CSV_RECORD_BYTES_MAX = 64 * 1024 * 1024;

/** Bytes parsed at a time; their records are held in memory. */
const CHUNK_BYTES = 64 * 1024;

/** As many chunks may have bytes of one record. */
const RECORD_CHUNKS_MAX = CSV_RECORD_BYTES_MAX / CHUNK_BYTES + 1;

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/** The position after a valid record, and after the `errors` damaged records that follow it. */
export interface CsvPosition {
  /** Byte offset after the valid record. */
  readonly offset: number;
  /** Number of lines before `offset`. */
  readonly line: number;
  readonly errors: number;
  readonly ended: boolean;
}

export const BEGINNING: CsvPosition = { offset: 0, line: 0, errors: 0, ended: false };

/** What the parser found: a record, or an error. */
type Outcome =
  | { readonly fields: readonly string[]; readonly stop: number; readonly line: number }
  | { readonly error: LeatError };

/** Error messages by the parser's error code. */
const DAMAGE: Readonly<Record<string, readonly [LeatErrorCode, string]>> = {
  CSV_INVALID_CLOSING_QUOTE: [
    "data_loss",
    "a quoted field continues after its closing quote; write a quote within a field twice",
  ],
  INVALID_OPENING_QUOTE: [
    "data_loss",
    "a quote is within a field that does not begin with one",
  ],
  CSV_QUOTE_NOT_CLOSED: ["data_loss", "the file ends within a quoted field that begins here"],
  CSV_MAX_RECORD_SIZE: [
    "resource_exhausted",
    `a record is longer than ${CSV_RECORD_BYTES_MAX} bytes (CSV_RECORD_BYTES_MAX), perhaps because a ` +
    `quote was never closed; the rest of the file is left out`,
  ],
  TOO_MANY_FIELDS: [
    "resource_exhausted",
    `a record has more than ${COLUMNS_MAX} fields (COLUMNS_MAX); is its delimiter the one that was ` +
    `given? The rest of the file is left out`,
  ],
};

/** The record that the parser is reading, and its last field. The types of csv-parse leave them out. */
interface ParserState {
  readonly state: {
    readonly record: readonly string[];
    readonly field: { length: number; toString(encoding: "utf8"): string };
    readonly quoting: boolean;
    record_length: number;
  };
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** Reads records. Damage loses its record, and later records until the quotes match again. */
export class QuotedCsvReader implements FormatReader {
  readonly #bytes: ByteReader;
  readonly #convert: RecordConversion;
  readonly #parser: Parser & ParserState;
  /** The offset at which the parser began to count bytes. */
  #base: number | undefined;
  /** The chunks of the file from `#parsed` on. */
  readonly #chunks: { readonly start: number; readonly bytes: Uint8Array }[] = [];
  /** The offset after the last parsed record, or before the last damaged field. */
  #parsed: number;
  /** Number of lines before that offset. */
  #parsedLines: number;
  /** The parser's own number of the last record's line. It counts both characters of a quoted "\r\n". */
  #parserLines = 0;
  /** The outcomes of the last chunk. */
  #outcomes: Outcome[] = [];
  /** The index of the next outcome to return. */
  #at = 0;
  /** The offset after the last valid record that was returned. */
  #stop: number;
  #line: number;
  /** Number of errors since that record. */
  #errors = 0;
  /** How many of these errors were thrown before the reader was saved. They are not thrown again. */
  #errorsBefore: number;
  /** The record of the last error, because only the first error of a record is reported. */
  #damaged: readonly string[] | undefined;
  #ended: boolean;

  /** @param bytes Must start at the offset of `from`. */
  constructor(bytes: ByteReader, delimiter: string, convert: RecordConversion, from = BEGINNING) {
    this.#bytes = bytes;
    this.#convert = convert;
    this.#stop = this.#parsed = from.offset;
    this.#line = this.#parsedLines = from.line;
    this.#errorsBefore = from.errors;
    this.#ended = from.ended;
    this.#parser = new Parser({
      delimiter,
      record_delimiter: ["\n", "\r\n"],
      relax_column_count: true,
      skip_empty_lines: true,
      skip_records_with_error: true,
      max_record_size: CSV_RECORD_BYTES_MAX,
      on_record: (fields: string[], { bytes, lines }) => this.#accept(fields, bytes, lines),
      on_skip: (error) => {
        this.#refuse(error);
        this.#shortenDamagedField();
      },
    }) as Parser & ParserState;
    this.#parser.on("error", (error) => this.#refuse(error));
  }

  get disposed(): boolean {
    return this.#bytes.closed;
  }

  step(): unknown {
    if (this.disposed) return END;
    const outcome = this.#outcomes[this.#at];
    if (outcome !== undefined) {
      this.#at++;
      return this.#give(outcome);
    }
    if (this.#ended) return END;
    this.#outcomes = [];
    this.#at = 0;
    this.#ended = true; // unless the file continues
    const filled = this.#bytes.fill(BYTE_ORDER_MARK.length);
    return then(filled, (available) => this.#parse(available));
  }

  save(): CsvPosition {
    return {
      offset: this.#stop,
      line: this.#line,
      errors: Math.max(this.#errors, this.#errorsBefore),
      // A restored reader parses again the outcomes that were not returned yet.
      ended: this.#ended && this.#at === this.#outcomes.length && !this.#bytes.hasFailed,
    };
  }

  close(): void {
    this.#bytes.close();
    this.#parser.destroy();
  }

  #give(outcome: Outcome): unknown {
    if ("error" in outcome) {
      if (++this.#errors <= this.#errorsBefore) return AGAIN;
      throw outcome.error;
    }
    const { fields, stop, line } = outcome;
    this.#stop = stop;
    this.#line = line;
    this.#errors = this.#errorsBefore = 0;
    return this.#convert(fields, () => ({
      text: `Line ${line} of ${this.#bytes.path}`,
      details: { path: this.#bytes.path, line },
    }));
  }

  async #parse(available: number): Promise<unknown> {
    if (this.disposed) return END;
    const { buffer, start: at, position } = this.#bytes;
    if (position === 0 && BYTE_ORDER_MARK.every((byte, i) => buffer[at + i] === byte)) {
      this.#bytes.skip(BYTE_ORDER_MARK.length);
    }
    this.#base ??= this.#bytes.position;
    const start = this.#bytes.position;
    const chunk = this.#bytes.take(Math.min(this.#bytes.available, CHUNK_BYTES));
    this.#chunks.push({ start, bytes: chunk });
    await new Promise<void>((resolve) => {
      if (available === 0) this.#parser.end(() => resolve());
      else this.#parser.write(chunk, () => resolve());
    });
    this.#dropChunks();
    this.#boundFields(this.#parser.state.record, this.#parser.info.bytes);
    if (available > 0 && !this.#isOverlong()) this.#ended = false;
    return AGAIN;
  }

  #isOverlong(): boolean {
    const last = this.#outcomes.at(-1);
    return last !== undefined && "error" in last && last.error.code === "resource_exhausted";
  }

  /** Refuses a record with too many fields, also one that continues in the next chunk. */
  #boundFields({ length }: readonly string[], bytes: number): void {
    if (length > COLUMNS_MAX) this.#refuse({ code: "TOO_MANY_FIELDS" }, bytes);
  }

  #accept(fields: readonly string[], bytes: number, lines: number): null {
    this.#boundFields(fields, bytes - 1); // before the end of the line
    if (!this.#isOverlong()) {
      const stop = this.#base! + bytes;
      const line = this.#lineAt(stop, lines);
      // The parser replaces invalid UTF-8 by this character, which a text may have, too.
      const isText = !fields.some((field) => field.includes("\ufffd")) || this.#isUtf8(stop);
      const where = { number: line, offset: this.#parsed };
      this.#outcomes.push(
        isText ? { fields, stop, line } : { error: notUtf8(where, this.#bytes) },
      );
      this.#parsed = stop;
      this.#parsedLines = line;
      this.#parserLines = lines;
      this.#damaged = undefined;
    }
    return null; // the parser must not output the record itself
  }

  /**
   * Shortens an unquoted field with a quote to one byte: at each further quote the parser copies the
   * whole field into an error. Its length still counts for the limit of the record.
   */
  #shortenDamagedField(): void {
    const { state } = this.#parser;
    if (state.quoting || state.field.length <= 1) return;
    state.record_length += state.field.length - 1;
    state.field.length = 1;
  }

  /** The line in which the record that ends at this offset ends. */
  #lineAt(stop: number, parserLines: number): number {
    const next = this.#parsedLines + 1;
    if (parserLines === this.#parserLines + 1) return next;
    return next + this.#lineFeedsUntil(stop - 1);
  }

  /**
   * The line of an error in the field behind this offset. Counts each byte once, because a file may
   * have an error in each line.
   */
  #lineOfError(offset: number, code: string | undefined): number {
    this.#parsedLines += this.#lineFeedsUntil(offset);
    this.#parsed = Math.max(this.#parsed, offset);
    const { record, field } = this.#parser.state;
    const emptyLines = record.length === 0 ? this.#emptyLines() : 0;
    const inner = code === "CSV_QUOTE_NOT_CLOSED"
      ? 0
      : field.toString("utf8").split("\n").length - 1;
    return this.#parsedLines + 1 + emptyLines + inner;
  }

  #lineFeedsUntil(stop: number): number {
    let count = 0;
    for (const bytes of this.#partsUntil(stop)) {
      for (const byte of bytes) if (byte === LINE_FEED) count++;
    }
    return count;
  }

  /** The number of empty lines from `#parsed` on. */
  #emptyLines(): number {
    let count = 0;
    for (const bytes of this.#partsUntil(Infinity)) {
      for (const byte of bytes) {
        if (byte === LINE_FEED) count++;
        else if (byte !== CARRIAGE_RETURN) return count;
      }
    }
    return count;
  }

  /** Whether the bytes of the record that ends at this offset are UTF-8. */
  #isUtf8(stop: number): boolean {
    const decoder = new TextDecoder("utf-8", { fatal: true });
    try {
      for (const part of this.#partsUntil(stop)) decoder.decode(part, { stream: true });
      decoder.decode();
      return true;
    } catch {
      return false;
    }
  }

  /** The bytes between `#parsed` and this offset. */
  *#partsUntil(stop: number): Iterable<Uint8Array> {
    for (const { start, bytes } of this.#chunks) {
      yield bytes.subarray(Math.max(this.#parsed - start, 0), Math.max(stop - start, 0));
    }
  }

  #dropChunks(): void {
    const isDone = ({ start, bytes }: { start: number; bytes: Uint8Array }) =>
      start + bytes.length <= this.#parsed;
    while (this.#chunks.length > RECORD_CHUNKS_MAX || this.#chunks.some(isDone)) {
      this.#chunks.shift();
    }
  }

  /** @param bytes How many bytes precede the damaged field. */
  #refuse(error: unknown, bytes = this.#parser.info.bytes): undefined {
    const { code } = error as { code?: string };
    const [leatCode, what] = DAMAGE[code ?? ""] ?? ["data_loss", LeatError.from(error).message];
    const { record } = this.#parser.state;
    // The end of the file is an error of its own, as in tf.data.
    const isEnd = code === "CSV_QUOTE_NOT_CLOSED";
    const isReported = record === this.#damaged && leatCode === "data_loss" && !isEnd;
    if (isReported || this.#isOverlong()) return;
    this.#damaged = record;
    const { path } = this.#bytes;
    const line = this.#lineOfError(this.#base! + bytes, code);
    this.#outcomes.push({
      error: new LeatError(leatCode, `Damaged CSV file ${path}, line ${line}: ${what}.`, {
        ...(error instanceof Error ? { cause: error } : {}),
        details: { path, line },
      }),
    });
  }
}
