/** `npz`: the rows of NumPy's .npz archives. */
import type { SourceFile } from "../formats/format_reader.ts";
import type { RowBlocks } from "../formats/row_blocks.ts";
import { registerNode } from "../node.ts";
import { type ColumnFileOptions, columnFileOptions, RowFileNode } from "./row_files.ts";

/** Reads each row as an object with a row of each array. Archives of uncompressed arrays can be divided. */
export class NpzNode extends RowFileNode {
  static readonly options = columnFileOptions("npz");
  constructor(files: unknown, options?: ColumnFileOptions) {
    super("npz", files, options);
  }

  /** A compressed archive is one part, because each part would have to decompress all of it. */
  override async countParts(source: SourceFile): Promise<number> {
    const archive = await this.#open(source);
    return archive.isStored ? await super.countParts(source) : 1;
  }

  protected override async openBlocks(source: SourceFile): Promise<RowBlocks> {
    const archive = await this.#open(source);
    return await archive.blocks();
  }

  async #open(source: SourceFile) {
    // Loaded only when such files are read.
    const { NpzArchive } = await import("../formats/npy/npz.ts");
    return await NpzArchive.open(source, this.columns);
  }
}

registerNode("npz", { fromWire: (a, [files]) => new NpzNode(files, a) });
