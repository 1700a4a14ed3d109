/** `tfRecords`: the records of TFRecord files. */
import { ByteReader } from "../formats/byte_reader.ts";
import type { ReadFrom, SourceFile } from "../formats/format_reader.ts";
import { type RecordPosition, RecordReader } from "../formats/tfrecord/tfrecord.ts";
import { registerNode } from "../node.ts";
import { TensorSpec } from "../elements/spec.ts";
import { fileOptions, FileSourceNode, type FileSourceOptions } from "./file_source.ts";

/**
 * The data of each record, as a copied `Uint8Array`. A record is one scalar, a byte string: batches
 * stack records of any length. Damage is reported like {@linkcode RecordReader} does.
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
