/** Reads variants: values that have their types in their bytes, as JSON has. */
import { decodeVariantColumn } from "hyparquet/src/variant.js";
import type { ParquetParsers } from "hyparquet";
import { LeatError } from "../../../core/error.ts";
import { JSON_STRUCTURES_MAX } from "../../../core/json.ts";

/** Reads variants whose names of fields are in the same metadata. */
export class VariantReader {
  readonly #parsers: ParquetParsers;
  readonly #stored: Uint8Array;
  readonly #metadata: Uint8Array;
  readonly #names: number;

  /** @throws {LeatError} `resource_exhausted` for more than {@linkcode JSON_STRUCTURES_MAX} names. */
  constructor(metadata: Uint8Array, parsers: ParquetParsers) {
    this.#parsers = parsers;
    this.#stored = metadata;
    // A copy, because the library reads beyond a view, and keeps the names for as long as its buffer.
    this.#metadata = metadata.slice();
    this.#names = new VariantWalk(this.#metadata).names();
  }

  reads(metadata: Uint8Array): boolean {
    return metadata === this.#stored;
  }

  /**
   * @throws {LeatError} `resource_exhausted` for more than {@linkcode JSON_STRUCTURES_MAX} structures.
   * @throws {Error} if its values overlap, or end behind it.
   */
  read(bytes: Uint8Array): unknown {
    new VariantWalk(bytes).value(0, this.#names);
    const variant = { metadata: this.#metadata, value: bytes.slice() };
    return decodeVariantColumn([variant], this.#parsers)[0];
  }
}

const OBJECT = 2;
const ARRAY = 3;
const SHORT_TEXT = 1;
const BINARY = 15;
const TEXT = 16;

/** Bytes of the other values, by their type. */
const PRIMITIVE_BYTES: readonly number[] =
  // deno-fmt-ignore -- one for each type
  [0, 0, 0, 1, 2, 4, 8, 8, 5, 9, 17, 4, 8, 8, 4, 4, 4, 8, 8, 8, 16];

/**
 * Walks a variant as the library decodes it. The library trusts counts and positions: with items at the
 * same position, the values of a hundred bytes would fill the memory.
 */
class VariantWalk {
  readonly #bytes: Uint8Array;
  /** Bytes that no value has yet: each belongs to one value at most. */
  #bytesLeft: number;
  #structuresLeft = JSON_STRUCTURES_MAX;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#bytesLeft = bytes.length;
  }

  /** Returns how many names of fields metadata have. */
  names(): number {
    const count = this.#number(1, (this.#number(0, 1) >> 6) + 1);
    this.#countStructures(count);
    return count;
  }

  value(at: number, names: number): void {
    const header = this.#number(at, 1);
    const info = header >> 2;
    const offsetBytes = (info & 3) + 1;
    switch (header & 3) {
      case OBJECT:
        return this.#items(at, names, info & 16 ? 4 : 1, (info >> 2 & 3) + 1, offsetBytes);
      case ARRAY:
        return this.#items(at, names, info & 4 ? 4 : 1, 0, offsetBytes);
      case SHORT_TEXT:
        return this.#spend(1 + info);
    }
    this.#spend(1 + (PRIMITIVE_BYTES[info] ?? 0));
    if (info === BINARY || info === TEXT) this.#spend(this.#number(at + 1, 4));
    if (info === BINARY) this.#countStructures(1);
  }

  /** Walks an array, or an object, whose items have ids of their names. */
  #items(at: number, names: number, countBytes: number, idBytes: number, offsetBytes: number) {
    const ids = at + 1 + countBytes;
    const count = this.#number(at + 1, countBytes);
    const offsets = ids + count * idBytes;
    const start = offsets + (count + 1) * offsetBytes;
    this.#spend(start - at);
    this.#countStructures(idBytes > 0 ? 1 + count : 1);
    for (let i = 0; i < count; i++) {
      if (idBytes > 0 && this.#number(ids + i * idBytes, idBytes) >= names) throw damaged();
      this.value(start + this.#number(offsets + i * offsetBytes, offsetBytes), names);
    }
  }

  #number(at: number, bytes: number): number {
    if (at + bytes > this.#bytes.length) throw damaged();
    let number = 0;
    for (let i = bytes - 1; i >= 0; i--) number = number * 256 + this.#bytes[at + i]!;
    return number;
  }

  #spend(bytes: number): void {
    this.#bytesLeft -= bytes;
    if (this.#bytesLeft < 0) throw damaged();
  }

  #countStructures(count: number): void {
    this.#structuresLeft -= count;
    if (this.#structuresLeft >= 0) return;
    throw new LeatError(
      "resource_exhausted",
      `a variant has more than ${JSON_STRUCTURES_MAX} lists, objects, fields and byte strings (JSON_STRUCTURES_MAX)`,
    );
  }
}

function damaged(): Error {
  return new Error("a variant is damaged");
}
