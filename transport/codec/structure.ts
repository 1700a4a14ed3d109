/**
 * The structure of a message: what becomes JavaScript values when it is decoded. Small bytes can
 * become large values: an empty map has one byte in a message, and takes 64 in memory. So structure
 * is counted by the values, too; decoded, it takes at most about four times what is counted here.
 */
import { LeatError } from "../../core/error.ts";

/** What a value in a list, a map or a tensor of texts counts for, in addition to its bytes. */
export const VALUE_BYTES = 32;
/** What an array of bytes, a typed array, a tensor or a payload counts for in addition. */
export const OBJECT_BYTES = 256;

/** How much structure a message may still have. */
export class StructureBudget {
  readonly #bytesMax: number;
  #left: number;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#left = bytesMax;
  }

  /** Counts structure before memory is allocated for it. @throws {LeatError} `resource_exhausted`. */
  spend(bytes: number): void {
    this.#left -= bytes;
    if (this.#left < 0) throw tooMuchStructure(this.#bytesMax);
  }
}

function tooMuchStructure(bytesMax: number): LeatError {
  return new LeatError(
    "resource_exhausted",
    `a message has more structure (texts, lists, maps and their items) than the limit of ` +
      `${bytesMax} bytes; put numbers into typed arrays or tensors, or send smaller batches`,
    { details: { structureBytesMax: bytesMax } },
  );
}
