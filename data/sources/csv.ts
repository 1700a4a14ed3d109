/** `csv`: the records of CSV files. */
import { checkBoolean, invalidArgument, optionsOf } from "../check.ts";
import type { CsvColumns } from "../formats/csv/csv_columns.ts";
import type { CsvDialect } from "../formats/csv/csv.ts";
import { CsvSchema } from "../formats/csv/csv_schema.ts";
import type { FormatReader, ReadFrom, SourceFile } from "../formats/format_reader.ts";
import { type Attributes, registerNode } from "../node.ts";
import type { ElementSpec } from "../elements/spec.ts";
import { DividedFilesNode } from "./divided_files.ts";
import type { FileSourceOptions } from "./file_source.ts";

/** How CSV files are read. */
export interface CsvOptions<C extends CsvColumns = CsvColumns> extends FileSourceOptions {
  /**
   * The columns to read. An object makes elements objects, and an array makes them tuples. With a
   * header, named columns are found by name, and others are skipped. Otherwise the columns are in this
   * order. A missing field is an error, unless its column has a `default`. Without `columns`, all
   * columns are read, as strings.
   */
  readonly columns?: C | undefined;
  /** Whether the first record of every file names its columns; default true. */
  readonly header?: boolean | undefined;
  /**
   * The columns to read, in this order: indices from 0, or names in the header. Not allowed if
   * `columns` are found by name.
   */
  readonly select?: readonly (string | number)[] | undefined;
  /** The columns to skip, like `select`. Not allowed with `select`. */
  readonly exclude?: readonly (string | number)[] | undefined;
  /** The delimiter between fields: one character; default `","`. */
  readonly delimiter?: string | undefined;
  /**
   * Whether fields may be quoted; default true. A quoted field may contain delimiters, quotes and ends of
   * line. If false, large files are divided among workers.
   */
  readonly useQuoteDelim?: boolean | undefined;
  /** Text that means a missing field, besides the empty text; default `""`. Only with `columns`. */
  readonly naValue?: string | undefined;
}

/** Reads each record as an object or a tuple. */
export class CsvNode extends DividedFilesNode {
  static readonly options = optionsOf<CsvOptions>("csv", {
    columns: true,
    header: true,
    select: true,
    exclude: true,
    delimiter: true,
    useQuoteDelim: true,
    naValue: true,
    compression: true,
    numParallelReads: true,
  });
  readonly schema: CsvSchema;
  readonly dialect: CsvDialect;

  constructor(
    files: unknown,
    options: { readonly [name in keyof CsvOptions | "partBytes"]?: unknown } = {},
  ) {
    super("csv", files, options);
    this.schema = new CsvSchema("csv", options);
    this.dialect = {
      delimiter: checkDelimiter(options.delimiter),
      useQuoteDelim: checkBoolean("csv", "useQuoteDelim", options.useQuoteDelim, true),
    };
  }

  protected override get dividesFiles(): boolean {
    return !this.dialect.useQuoteDelim && super.dividesFiles;
  }

  override async openReader(source: SourceFile, from: ReadFrom): Promise<FormatReader> {
    // Loaded only when such files are read.
    const { openCsv } = await import("../formats/csv/csv.ts");
    return await openCsv(source, from, this.schema, this.dialect, this.partBytes);
  }

  override get attributes(): Attributes {
    const { columns, header, select, exclude, naValue } = this.schema;
    return { ...super.attributes, ...this.dialect, columns, header, select, exclude, naValue };
  }

  override get elementSpec(): ElementSpec {
    return this.schema.elementSpec;
  }
}

registerNode("csv", { fromWire: (a, [files]) => new CsvNode(files, a) });

function checkDelimiter(value: unknown = ","): string {
  if (typeof value === "string" && [...value].length === 1 && !/["\r\n]/.test(value)) return value;
  throw invalidArgument("csv", "delimiter", "one character, no quote or end of line", value);
}
