/**
 * `jsonLines`: the values of files that have a JSON value on each line.
 */

import type { ByteReader } from "../formats/byte_reader.ts";
import { parseJsonLine } from "../formats/json_lines.ts";
import { LineReader } from "../formats/lines.ts";
import { registerNode } from "../node.ts";
import { FileSourceNode, type FileSourceOptions } from "./file_source.ts";

/** Each value as `JSON.parse` makes it. Blank lines are left out; a line that is no JSON costs that line. */
export class JsonLinesNode extends FileSourceNode {
  constructor(files: unknown, options?: FileSourceOptions) {
    super("jsonLines", files, options);
  }

  override get elementSpec(): undefined {
    return undefined;
  }

  override openReader(bytes: ByteReader): LineReader {
    return new LineReader(bytes, parseJsonLine);
  }
}

registerNode("jsonLines", { fromWire: (a, [files]) => new JsonLinesNode(files, a) });
