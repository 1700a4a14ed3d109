/**
 * The seam between file formats and the sources that read files with them.
 */

import type { Stepping } from "../stepping.ts";

/**
 * The elements of one open file, in order. A step that throws or rejects costs an element; the next one goes on as the format can, or is
 * the end. Once closed, steps answer the end.
 */
export interface FormatReader extends Stepping {
  /** Gives the file back; idempotent. */
  close(): void;
}
