/**
 * The seam between file formats and the sources that read files with them.
 */

import type { OpenFile } from "../host.ts";
import type { Stepping } from "../stepping.ts";
import type { Compression } from "./compression.ts";

/**
 * The elements of one open file, in order. A step that throws or rejects costs an element; the next one goes on as the format can, or is
 * the end. Once closed, steps answer the end.
 */
export interface FormatReader extends Stepping {
  /** Where it stands between two steps: small plain data from which another reader of the same file goes on. */
  save(): unknown;
  /** Gives the file back; idempotent. */
  close(): void;
}

/** A file that a source has opened; whoever reads it closes it. */
export interface SourceFile {
  readonly path: string;
  readonly file: OpenFile;
  readonly compression: Compression | undefined;
}

/** What to read of a file: all of it, unless these say otherwise. */
export interface ReadFrom {
  /** The number of the one part to read, of a file that its format divides. */
  readonly part?: number | undefined;
  /** What a reader of the same file and part answered to `save()`. */
  readonly position?: unknown;
}
