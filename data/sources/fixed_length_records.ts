/** `fixedLengthRecords`: the records of files whose records all have the same length. */
import { checkInteger, optionsOf } from "../check.ts";
import { countRecords, openFixedLength, type RecordLayout } from "../formats/fixed_length.ts";
import type { FormatReader, ReadFrom, SourceFile } from "../formats/format_reader.ts";
import { RECORD_BYTES_MAX } from "../formats/tfrecord/tfrecord.ts";
import { type Attributes, registerNode } from "../node.ts";
import { TensorSpec } from "../elements/spec.ts";
import { DividedFilesNode } from "./divided_files.ts";
import type { FileSourceOptions } from "./file_source.ts";

/** How files of records of equal length are read. */
export interface FixedLengthRecordOptions extends FileSourceOptions {
  /** The length of every record, in bytes. */
  readonly recordBytes: number;
  /** Bytes to skip at the beginning of every file; default 0. */
  readonly headerBytes?: number | undefined;
  /** Bytes to skip at the end of every file; default 0. */
  readonly footerBytes?: number | undefined;
}

/** Reads each record as a `Uint8Array` in memory of its own: a scalar byte string, as in `tfRecords`. */
export class FixedLengthRecordsNode extends DividedFilesNode {
  static readonly options = optionsOf<FixedLengthRecordOptions>("fixedLengthRecords", {
    recordBytes: true,
    headerBytes: true,
    footerBytes: true,
    compression: true,
    numParallelReads: true,
  });
  override readonly elementSpec = new TensorSpec("bytes", []);
  readonly layout: RecordLayout;

  constructor(
    files: unknown,
    options: { readonly [name in keyof FixedLengthRecordOptions | "partBytes"]?: unknown } = {},
  ) {
    const kind = "fixedLengthRecords";
    super(kind, files, options);
    const { recordBytes, headerBytes = 0, footerBytes = 0 } = options;
    this.layout = {
      recordBytes: checkInteger(kind, "recordBytes", recordBytes, 1, RECORD_BYTES_MAX),
      headerBytes: checkInteger(kind, "headerBytes", headerBytes, 0, RECORD_BYTES_MAX),
      footerBytes: checkInteger(kind, "footerBytes", footerBytes, 0, RECORD_BYTES_MAX),
    };
  }

  override openReader(source: SourceFile, from: ReadFrom): FormatReader {
    return openFixedLength(source, from, this.layout, this.#partRecords);
  }

  override countParts(source: SourceFile): number {
    return Math.max(1, Math.ceil(countRecords(source, this.layout) / this.#partRecords));
  }

  get #partRecords(): number {
    return Math.max(1, Math.floor(this.partBytes / this.layout.recordBytes));
  }

  override get attributes(): Attributes {
    return { ...super.attributes, ...this.layout };
  }
}

registerNode("fixedLengthRecords", {
  fromWire: (a, [files]) => new FixedLengthRecordsNode(files, a),
});
