/** `npy`: the rows of NumPy's .npy files. */
import { optionsOf } from "../check.ts";
import type { SourceFile } from "../formats/format_reader.ts";
import type { RowBlocks } from "../formats/row_blocks.ts";
import { openNpy } from "../formats/npy/npy.ts";
import { registerNode } from "../node.ts";
import { type AndCompression, RowFileNode, type RowFileOptions } from "./row_files.ts";

/** Reads each row along axis 0. A part of a file is about 4 MiB of rows. */
export class NpyNode extends RowFileNode {
  static readonly options = optionsOf<AndCompression<RowFileOptions>>("npy", {
    spec: true,
    numParallelReads: true,
    compression: true,
  });
  constructor(files: unknown, options?: RowFileOptions) {
    super("npy", files, options);
  }

  protected override openBlocks(source: SourceFile): Promise<RowBlocks> {
    return openNpy(source);
  }
}

registerNode("npy", { fromWire: (a, [files]) => new NpyNode(files, a) });
