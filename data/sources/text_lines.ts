/**
 * `textLines`: the lines of text files.
 */

import type { ByteReader } from "../formats/byte_reader.ts";
import { LineReader } from "../formats/lines.ts";
import { registerNode } from "../node.ts";
import { TensorSpec } from "../spec.ts";
import { FileSourceNode, type FileSourceOptions } from "./file_source.ts";

/** Each line without its end, as a string. Lines and their errors are those of {@linkcode LineReader}. */
export class TextLinesNode extends FileSourceNode {
  constructor(files: unknown, options?: FileSourceOptions) {
    super("textLines", files, options);
  }

  override get elementSpec(): TensorSpec {
    return new TensorSpec("string", []);
  }

  override openReader(bytes: ByteReader): LineReader {
    return new LineReader(bytes);
  }
}

registerNode("textLines", { fromWire: (a, [files]) => new TextLinesNode(files, a) });
