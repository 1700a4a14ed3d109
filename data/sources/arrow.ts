/** `arrow`: the rows of Arrow IPC files and streams. */
import type { SourceFile } from "../formats/format_reader.ts";
import type { RowBlocks } from "../formats/row_blocks.ts";
import { registerNode } from "../node.ts";
import { type ColumnFileOptions, columnFileOptions, RowFileNode } from "./row_files.ts";

/** Reads each row as an object of its columns. A part of a file is a record batch; streams have one part. */
export class ArrowNode extends RowFileNode {
  static readonly options = columnFileOptions("arrow");
  protected override readonly canLeaveOutColumns = true;

  constructor(files: unknown, options?: ColumnFileOptions) {
    super("arrow", files, options);
  }

  protected override async openBlocks(source: SourceFile): Promise<RowBlocks> {
    // Loaded only when such files are read.
    const { openArrow } = await import("../formats/arrow/arrow.ts");
    return await openArrow(source, this.columns);
  }
}

registerNode("arrow", { fromWire: (a, [files]) => new ArrowNode(files, a) });
