/** Opens CSV files: records of delimited fields, quoted (RFC 4180) or not. */
import { shownPath } from "../../../core/shown_text.ts";
import type { OpenFile } from "../../host.ts";
import { END } from "../../iterator.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import { ByteReader } from "../byte_reader.ts";
import { COLUMNS_MAX } from "../column_rows.ts";
import { recordConversion } from "./csv_columns.ts";
import { BEGINNING, type CsvPosition, QuotedCsvReader } from "./csv_quoted.ts";
import type { CsvSchema } from "./csv_schema.ts";
import type { FormatReader, ReadFrom, SourceFile } from "../format_reader.ts";
import {
  describeLine,
  type LineConversion,
  lineDetails,
  type LinePosition,
  openLines,
} from "../text/lines.ts";

/** One more than the limit, so that records beyond it are detected. */
const FIELDS_SPLIT_MAX = COLUMNS_MAX + 1;

/** How fields and records are separated. */
export interface CsvDialect {
  /** One character. */
  readonly delimiter: string;
  /** Whether fields may be quoted, and so contain delimiters, quotes and ends of line. */
  readonly useQuoteDelim: boolean;
}

/**
 * Opens the records of a file. Blank lines are skipped. A record that is damaged, not UTF-8 or does not
 * fit the schema is lost, with a `data_loss` error. A file whose header does not fit is lost as a whole.
 *
 * A file without quoted fields is divided into parts of `partBytes`. A file with quoted fields is not
 * divided, because a reader that starts in its middle does not know whether it is inside quotes.
 */
export async function openCsv(
  source: SourceFile,
  from: ReadFrom,
  schema: CsvSchema,
  dialect: CsvDialect,
  partBytes: number,
): Promise<FormatReader> {
  const first = schema.needsFirst ? await readFirst(source, dialect, partBytes) : undefined;
  if (first === undefined && schema.needsFirst) return openEmpty(source);
  const convert = recordConversion(schema.planOf(shownPath(source.path), first?.fields));
  const afterHeader = schema.header ? first!.after : undefined;
  if (!dialect.useQuoteDelim) {
    const convertLine: LineConversion = (line, path) =>
      line.text === ""
        ? AGAIN
        : convert(line.text.split(dialect.delimiter, FIELDS_SPLIT_MAX), () => ({
          text: describeLine(line, path),
          details: lineDetails(line, path),
        }));
    return openLines(source, from, partBytes, convertLine, afterHeader as LinePosition | undefined);
  }
  const position = (from.position ?? afterHeader ?? BEGINNING) as CsvPosition;
  const bytes = ByteReader.of(source, position.offset);
  return new QuotedCsvReader(bytes, dialect.delimiter, convert, position);
}

interface FirstRecord {
  readonly fields: readonly string[];
  /** The reader's position after the record. */
  readonly after: unknown;
}

/** Reads the first record of a file; `undefined` if there is none. The file stays open. */
async function readFirst(
  source: SourceFile,
  { delimiter, useQuoteDelim }: CsvDialect,
  partBytes: number,
): Promise<FirstRecord | undefined> {
  const borrowed = { ...source, file: withoutClose(source.file) };
  const reader = useQuoteDelim
    ? new QuotedCsvReader(ByteReader.of(borrowed), delimiter, (fields) => fields)
    : openLines(
      borrowed,
      {},
      partBytes,
      ({ text }) => text === "" ? AGAIN : text.split(delimiter, FIELDS_SPLIT_MAX),
    );
  try {
    for (;;) {
      const fields = await reader.step();
      if (fields === END) return undefined;
      if (fields !== AGAIN) return { fields: fields as string[], after: reader.save() };
    }
  } finally {
    reader.close();
  }
}

/** Opens an empty file, which has no records and no header. */
function openEmpty(source: SourceFile): FormatReader {
  const end = { ...BEGINNING, ended: true };
  return new QuotedCsvReader(ByteReader.of(source), ",", (fields) => fields, end);
}

/** Returns the file with a `close()` that does nothing, because another reader will read it. */
function withoutClose(file: OpenFile): OpenFile {
  return {
    sizeBytes: file.sizeBytes,
    read: (into, offset) => file.read(into, offset),
    close: () => {},
  };
}
