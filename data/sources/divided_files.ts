/** The base of sources that divide their files into parts of a number of bytes. */
import { checkInteger } from "../check.ts";
import type { SourceFile } from "../formats/format_reader.ts";
import { FIRST_BYTES_FOR_SIZE } from "../host.ts";
import type { Attributes } from "../node.ts";
import { FileSourceNode } from "./file_source.ts";

/**
 * Bytes of one part of a file: large enough that reading a part takes much longer than opening the
 * file, and small enough that many tasks can share a large file.
 */
const PART_BYTES = 64 * 1024 * 1024;

export abstract class DividedFilesNode extends FileSourceNode {
  /** Bytes per part. The serialised graph has it, because the numbers of splits depend on it. */
  readonly partBytes: number;

  constructor(
    kind: string,
    files: unknown,
    options: { compression?: unknown; numParallelReads?: unknown; partBytes?: unknown } = {},
  ) {
    super(kind, files, options);
    this.partBytes = options.partBytes === undefined
      ? PART_BYTES
      : checkInteger(kind, "partBytes", options.partBytes, 1);
  }

  /** The parts follow from the size, which storage tells with any range. */
  override get firstBytesToCount(): number {
    return FIRST_BYTES_FOR_SIZE;
  }

  override countParts({ file }: SourceFile): number | Promise<number> {
    return Math.max(1, Math.ceil(file.sizeBytes / this.partBytes));
  }

  override get attributes(): Attributes {
    const { partBytes } = this;
    return { ...super.attributes, ...(this.dividesFiles ? { partBytes } : {}) };
  }
}
