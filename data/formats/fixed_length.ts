/** Reads files whose records have equal length. An optional header and footer are skipped. */
import { LeatError } from "../../core/error.ts";
import { shownPath } from "../../core/shown_text.ts";
import { then } from "../../core/then.ts";
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

/** Returns the number of records of an uncompressed file. */
export function countRecords({ path, file }: SourceFile, layout: RecordLayout): number {
  const { recordBytes, headerBytes, footerBytes } = layout;
  const bodyBytes = file.sizeBytes - headerBytes - footerBytes;
  if (bodyBytes >= 0 && bodyBytes % recordBytes === 0) return bodyBytes / recordBytes;
  throw wrongSize(shownPath(path), layout, file.sizeBytes);
}

/**
 * Opens the records of a file, or of a part of `partRecords` records.
 *
 * Sizes that do not add up are `invalid_argument`, naming all of them. An uncompressed file throws it
 * here; a compressed file throws it when its end is read.
 */
export function openFixedLength(
  source: SourceFile,
  { part, position }: ReadFrom,
  layout: RecordLayout,
  partRecords: number,
): FormatReader {
  const { recordBytes, headerBytes } = layout;
  const isPlain = source.compression === undefined;
  const count = isPlain ? countRecords(source, layout) : Infinity;
  const start = (part ?? 0) * partRecords;
  const stop = part === undefined ? count : Math.min(start + partRecords, count);
  const from = position as FixedLengthPosition | undefined ??
    { offset: isPlain ? headerBytes + start * recordBytes : 0, ended: false };
  const stopOffset = headerBytes + stop * recordBytes;
  if (part !== undefined) source.file.expect?.(from.offset, stopOffset);
  const bytes = ByteReader.of(source, from.offset);
  return fixedLengthReader(bytes, layout, stopOffset, from);
}

/** Reads records up to an offset, or to the footer. */
function fixedLengthReader(
  bytes: ByteReader,
  layout: RecordLayout,
  stop: number,
  from: FixedLengthPosition,
): FormatReader {
  let { ended } = from;
  const { recordBytes, headerBytes, footerBytes } = layout;
  const record = (header: number, trailing: number, available: number) => {
    if (bytes.closed) return END;
    if (available < header + recordBytes + trailing) {
      if (available === header + trailing) return END;
      throw wrongSize(bytes.path, layout, bytes.position + available);
    }
    bytes.skip(header);
    ended = false;
    return bytes.take(recordBytes);
  };
  return {
    get disposed() {
      return bytes.closed;
    },
    step: () => {
      if (ended || bytes.closed || bytes.position >= stop) return END;
      ended = true; // unless there is a record
      const header = bytes.position === 0 ? headerBytes : 0;
      // The size of a compressed file is unknown: bytes are a record only if a footer follows them.
      const trailing = stop === Infinity ? footerBytes : 0;
      const filled = bytes.fill(header + recordBytes + trailing);
      return then(filled, (available) => record(header, trailing, available));
    },
    save: () =>
      ({
        offset: bytes.position,
        ended: ended && !bytes.hasFailed,
      }) satisfies FixedLengthPosition,
    close: () => bytes.close(),
  };
}

function wrongSize(path: string, layout: RecordLayout, sizeBytes: number): LeatError {
  const { recordBytes, headerBytes, footerBytes } = layout;
  const bodyBytes = sizeBytes - headerBytes - footerBytes;
  return new LeatError(
    "invalid_argument",
    `${path} has ${sizeBytes} bytes. Without a header of ${headerBytes} and a footer of ` +
      `${footerBytes} bytes, ${bodyBytes} bytes remain, which is no multiple of recordBytes, ` +
      `${recordBytes}.`,
    { details: { path, sizeBytes, ...layout } },
  );
}
