/** `tfRecords`: the records of TFRecord files. */
import { ByteReader } from "../formats/byte_reader.ts";
import type { ReadFrom, SourceFile } from "../formats/format_reader.ts";
import { type RecordPosition, RecordReader } from "../formats/tfrecord/tfrecord.ts";
import { registerNode } from "../node.ts";
import { TensorSpec } from "../elements/spec.ts";
import { fileOptions, FileSourceNode, type FileSourceOptions } from "./file_source.ts";

/**
 * Reads the data of each record as a `Uint8Array` in memory of its own. A record is a scalar byte
 * string, so batches stack records of any length. For damaged files see {@linkcode RecordReader}.
 */
export class TfRecordsNode extends FileSourceNode {
  static readonly options = fileOptions("tfRecords");
  override readonly elementSpec = new TensorSpec("bytes", []);

  constructor(files: unknown, options?: FileSourceOptions) {
    super("tfRecords", files, options);
  }

  override openReader(source: SourceFile, { position }: ReadFrom): RecordReader {
    const from = position as RecordPosition | undefined;
    return new RecordReader(ByteReader.of(source, from?.offset), from?.ended);
  }
}

registerNode("tfRecords", { fromWire: (a, [files]) => new TfRecordsNode(files, a) });
