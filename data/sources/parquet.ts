/** `parquet`: the rows of Parquet files. */
import { checkInteger } from "../check.ts";
import type { SourceFile } from "../formats/format_reader.ts";
import type { RowBlocks } from "../formats/row_blocks.ts";
import { type Attributes, registerNode } from "../node.ts";
import { type ColumnFileOptions, columnFileOptions, RowFileNode } from "./row_files.ts";

/** Reads each row as an object of its columns. A part of a file is one or more row groups. */
export class ParquetNode extends RowFileNode {
  static readonly options = columnFileOptions("parquet");
  protected override readonly canLeaveOutColumns = true;

  /** Limit of the bytes of a part; default: the format's. Splits depend on it. */
  readonly #partBytes: number | undefined;

  constructor(files: unknown, options: ColumnFileOptions & { partBytes?: unknown } = {}) {
    super("parquet", files, options);
    const { partBytes } = options;
    if (partBytes === undefined) return;
    this.#partBytes = checkInteger("parquet", "partBytes", partBytes, 1);
  }

  override get attributes(): Attributes {
    const partBytes = this.#partBytes;
    return { ...super.attributes, ...(partBytes === undefined ? {} : { partBytes }) };
  }

  protected override async openBlocks(source: SourceFile): Promise<RowBlocks> {
    // Loaded only when such files are read.
    const { openParquet } = await import("../formats/parquet/parquet.ts");
    return await openParquet(source, this.columns, this.#partBytes);
  }
}

registerNode("parquet", { fromWire: (a, [files]) => new ParquetNode(files, a) });
