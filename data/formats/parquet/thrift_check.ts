/**
 * Validates structures of Thrift's compact protocol before hyparquet reads them. hyparquet trusts the
 * lengths of lists, so a few bytes at the end of a file could make it create a billion empty structures.
 */

import { LeatError } from "../../../core/error.ts";
import { ByteWalk } from "../byte_walk.ts";

const TRUE = 1;
const FALSE = 2;
const BYTE = 3;
const I16 = 4;
const I32 = 5;
const I64 = 6;
const DOUBLE = 7;
const BINARY = 8;
const LIST = 9;
const STRUCT = 12;

/** More than any structure of Parquet needs. */
const DEPTH_MAX = 32;

/** Maximum number of structures: each takes about 200 bytes in memory, even an empty one. */
const STRUCTURES_MAX = 1 << 22;

/** A column of a schema has the smallest structures: 4 to 5 bytes each, those around it included. */
const STRUCTURE_BYTES_MIN = 3;

/** So many structures are few, however small they are. */
const FEW_STRUCTURES = 1_000;

/**
 * Returns the offset after a structure that begins at `start`.
 *
 * @throws {Error} if the structure ends too early, or a list is longer than the remaining bytes, or
 * there are more structures than Parquet can have in so many bytes.
 * @throws {LeatError} `resource_exhausted` for more than `STRUCTURES_MAX` structures.
 */
export function thriftEnd(bytes: Uint8Array, start = 0): number {
  return new Walk(bytes, start).struct(0);
}

/** Skips the values of a structure. */
class Walk extends ByteWalk {
  #structures = 0;

  constructor(bytes: Uint8Array, start: number) {
    super(bytes, "a structure", start);
  }

  struct(depth: number): number {
    checkDepth(depth);
    this.#count();
    for (;;) {
      const field = this.byte();
      const type = field & 0x0f;
      if (type === 0) return this.at;
      if (field >> 4 === 0) this.varint();
      // The type of a boolean field is also its value.
      if (type !== TRUE && type !== FALSE) this.#value(type, depth);
    }
  }

  #count(): void {
    const count = ++this.#structures;
    if (count > STRUCTURES_MAX) {
      throw new LeatError(
        "resource_exhausted",
        `there are more than ${STRUCTURES_MAX} structures; write fewer row groups or columns a file`,
      );
    }
    if (count <= FEW_STRUCTURES || count * STRUCTURE_BYTES_MIN <= this.bytes.length) return;
    throw new Error(`${count} structures in ${this.bytes.length} bytes are too many`);
  }

  #value(type: number, depth: number): void {
    switch (type) {
      case TRUE:
      case FALSE:
      case BYTE:
        return this.#skip(1);
      case I16:
      case I32:
      case I64:
        return void this.varint();
      case DOUBLE:
        return this.#skip(8);
      case BINARY:
        return this.#skip(this.varint());
      case LIST:
        return this.#list(depth + 1);
      case STRUCT:
        return void this.struct(depth + 1);
      default:
        throw new Error(`a field has the unknown type ${type}`);
    }
  }

  #list(depth: number): void {
    checkDepth(depth);
    const header = this.byte();
    const length = header >> 4 === 15 ? this.varint() : header >> 4;
    const remaining = this.bytes.length - this.at;
    if (length > remaining) {
      throw new Error(`a list claims ${length} items, and ${remaining} bytes are left`);
    }
    for (let i = 0; i < length; i++) this.#value(header & 0x0f, depth);
  }

  #skip(count: number): void {
    this.at += count;
    if (this.at > this.bytes.length) throw this.endsWithin();
  }
}

function checkDepth(depth: number): void {
  if (depth > DEPTH_MAX) {
    throw new Error(`structures and lists are nested more than ${DEPTH_MAX} deep`);
  }
}
