/** `parquet`: the rows of Parquet files. */
import type { SourceFile } from "../formats/format_reader.ts";
import type { RowBlocks } from "../formats/row_blocks.ts";
import { registerNode } from "../node.ts";
import { type ColumnFileOptions, columnFileOptions, RowFileNode } from "./row_files.ts";

/** Reads each row as an object of its columns. A part of a file is a row group. */
export class ParquetNode extends RowFileNode {
  static readonly options = columnFileOptions("parquet");
  protected override readonly canLeaveOutColumns = true;

  constructor(files: unknown, options?: ColumnFileOptions) {
    super("parquet", files, options);
  }

  protected override async openBlocks(source: SourceFile): Promise<RowBlocks> {
    // Loaded only when such files are read.
    const { openParquet } = await import("../formats/parquet/parquet.ts");
    return await openParquet(source, this.columns);
  }
}

registerNode("parquet", { fromWire: (a, [files]) => new ParquetNode(files, a) });
