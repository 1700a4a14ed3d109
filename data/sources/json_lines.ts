/** `jsonLines`: one JSON value per line. */
import type { ReadFrom, SourceFile } from "../formats/format_reader.ts";
import { parseJsonLine } from "../formats/text/json_lines.ts";
import { type LineReader, openLines } from "../formats/text/lines.ts";
import { registerNode } from "../node.ts";
import { DividedFilesNode } from "./divided_files.ts";
import { fileOptions, type FileSourceOptions } from "./file_source.ts";

/** Reads each value as `JSON.parse` returns it. Blank lines are skipped. A line that is not JSON is lost. */
export class JsonLinesNode extends DividedFilesNode {
  static readonly options = fileOptions("jsonLines");
  override readonly elementSpec: undefined = undefined;

  constructor(files: unknown, options?: FileSourceOptions & { partBytes?: unknown }) {
    super("jsonLines", files, options);
  }

  override openReader(source: SourceFile, from: ReadFrom): LineReader {
    return openLines(source, from, this.partBytes, parseJsonLine);
  }
}

registerNode("jsonLines", { fromWire: (a, [files]) => new JsonLinesNode(files, a) });
