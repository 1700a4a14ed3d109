/** `textLines`: the lines of text files. */
import type { ReadFrom, SourceFile } from "../formats/format_reader.ts";
import { type LineReader, openLines } from "../formats/text/lines.ts";
import { registerNode } from "../node.ts";
import { TensorSpec } from "../elements/spec.ts";
import { DividedFilesNode } from "./divided_files.ts";
import { fileOptions, type FileSourceOptions } from "./file_source.ts";

/** Reads each line without its end, as a string: see {@linkcode LineReader}. */
export class TextLinesNode extends DividedFilesNode {
  static readonly options = fileOptions("textLines");
  override readonly elementSpec = new TensorSpec("string", []);

  constructor(files: unknown, options?: FileSourceOptions & { partBytes?: unknown }) {
    super("textLines", files, options);
  }

  override openReader(source: SourceFile, from: ReadFrom): LineReader {
    return openLines(source, from, this.partBytes);
  }
}

registerNode("textLines", { fromWire: (a, [files]) => new TextLinesNode(files, a) });
