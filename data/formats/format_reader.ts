/** The interface between file formats and the sources that read files with them. */
import type { OpenFile } from "../host.ts";
import type { Stepping } from "../iterators/stepping.ts";
import type { Compression } from "./compression/compression.ts";

/**
 * Reads the elements of one open file, in order. A step that throws or rejects loses one element. The
 * next step continues after it, or returns `END` if the format cannot continue. After a
 * `ReadingFailure` no step follows, and `save()` returns the position before it. After `close()`,
 * steps return `END`.
 */
export interface FormatReader extends Stepping {
  /**
   * Returns the position between two steps, as small plain data. Another reader of the file can
   * continue from it.
   */
  save(): unknown;
  /** Closes the file; idempotent. */
  close(): void;
}

/** An open file. Its reader closes it. */
export interface SourceFile {
  readonly path: string;
  readonly file: OpenFile;
  readonly compression: Compression | undefined;
  /** The fields that later operators need: a columnar format reads only these. Default: all. */
  readonly wantedFields?: readonly string[] | undefined;
}

/** Which part of a file to read; default: all of it. */
export interface ReadFrom {
  /** The number of the part to read, if the format divides the file. */
  readonly part?: number | undefined;
  /** A position that `save()` of a reader of the same file and part returned. */
  readonly position?: unknown;
}
