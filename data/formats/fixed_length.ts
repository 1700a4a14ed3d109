/** Files of records of one length, with an optional header and footer that are skipped. */
import { LeatError } from "../../core/error.ts";
import { END } from "../iterator.ts";
import { ByteReader } from "./byte_reader.ts";
import type { FormatReader, ReadFrom, SourceFile } from "./format_reader.ts";

export interface RecordLayout {
  readonly recordBytes: number;
  readonly headerBytes: number;
  readonly footerBytes: number;
}

interface FixedLengthPosition {
  readonly offset: number;
  readonly ended: boolean;
}

/** Number of records of an uncompressed file. */
export function countRecords({ path, file }: SourceFile, layout: RecordLayout): number {
  const { recordBytes, headerBytes, footerBytes } = layout;
  const bodyBytes = file.sizeBytes - headerBytes - footerBytes;
  if (bodyBytes >= 0 && bodyBytes % recordBytes === 0) return bodyBytes / recordBytes;
  throw wrongSize(path, layout, file.sizeBytes);
}

/**
 * Reads the records of a file, or `partRecords` of them.
 *
 * @throws {LeatError} `invalid_argument` with all sizes if they do not add up: immediately for an
 * uncompressed file, at its end for a compressed one.
 */
export function openFixedLength(
  source: SourceFile,
  { part, position }: ReadFrom,
  layout: RecordLayout,
  partRecords: number,
): FixedLengthReader {
  const { recordBytes, headerBytes } = layout;
  const isPlain = source.compression === undefined;
  const count = isPlain ? countRecords(source, layout) : Infinity;
  const start = (part ?? 0) * partRecords;
  const stop = part === undefined ? count : Math.min(start + partRecords, count);
  const from = position as FixedLengthPosition | undefined ??
    { offset: isPlain ? headerBytes + start * recordBytes : 0, ended: false };
  const bytes = ByteReader.of(source, from.offset);
  return new FixedLengthReader(bytes, layout, headerBytes + stop * recordBytes, from.ended);
}

/** Reads records up to an offset, or to the footer. */
export class FixedLengthReader implements FormatReader {
  readonly #bytes: ByteReader;
  readonly #layout: RecordLayout;
  readonly #stop: number;
  #ended: boolean;

  constructor(bytes: ByteReader, layout: RecordLayout, stop: number, ended: boolean) {
    this.#bytes = bytes;
    this.#layout = layout;
    this.#stop = stop;
    this.#ended = ended;
  }

  get disposed(): boolean {
    return this.#bytes.closed;
  }

  step(): unknown {
    if (this.#ended || this.disposed || this.#bytes.position >= this.#stop) return END;
    this.#ended = true; // unless there is a record
    const { recordBytes, headerBytes, footerBytes } = this.#layout;
    const header = this.#bytes.position === 0 ? headerBytes : 0;
    // A compressed file's size is unknown, so the footer shows only when nothing follows it.
    const behind = this.#stop === Infinity ? footerBytes : 0;
    const filled = this.#bytes.fill(header + recordBytes + behind);
    return filled instanceof Promise
      ? filled.then((available) => this.#record(header, behind, available))
      : this.#record(header, behind, filled);
  }

  save(): FixedLengthPosition {
    return { offset: this.#bytes.position, ended: this.#ended };
  }

  close(): void {
    this.#bytes.close();
  }

  #record(header: number, behind: number, available: number): unknown {
    if (this.disposed) return END;
    const { recordBytes } = this.#layout;
    if (available < header + recordBytes + behind) {
      if (available === header + behind) return END;
      throw wrongSize(this.#bytes.path, this.#layout, this.#bytes.position + available);
    }
    this.#bytes.skip(header);
    this.#ended = false;
    return this.#bytes.take(recordBytes);
  }
}

function wrongSize(path: string, layout: RecordLayout, sizeBytes: number): LeatError {
  const { recordBytes, headerBytes, footerBytes } = layout;
  const bodyBytes = sizeBytes - headerBytes - footerBytes;
  return new LeatError(
    "invalid_argument",
    `${path} has ${sizeBytes} bytes: without a header of ${headerBytes} and a footer of ` +
      `${footerBytes} bytes ${bodyBytes} are left, which is no multiple of recordBytes, ${recordBytes}.`,
    { details: { path, sizeBytes, ...layout } },
  );
}
