/**
 * Checks the levels and values of a page before hyparquet decodes them, because it trusts the counts
 * and lengths in them. A few bytes could make it run for ever, or fill the memory.
 *
 * The walk goes as far as the library's decoders, and skips exactly as many bytes as they read.
 */
import type { ColumnMetaData, FileMetaData } from "hyparquet";
import { deltaBinaryUnpack } from "hyparquet/src/delta.js";
import { readRleBitPackedHybrid } from "hyparquet/src/encoding.js";
import {
  getMaxDefinitionLevel,
  getMaxRepetitionLevel,
  getSchemaPath,
} from "hyparquet/src/schema.js";
import { LeatError } from "../../../core/error.ts";
import { ByteWalk } from "./byte_walk.ts";

// The numbers of encodings in the header of a page.
const PLAIN = 0;
const PLAIN_DICTIONARY = 2;
const RLE = 3;
const DELTA_BINARY_PACKED = 5;
const DELTA_LENGTH_BYTE_ARRAY = 6;
const DELTA_BYTE_ARRAY = 7;
const RLE_DICTIONARY = 8;
const BYTE_STREAM_SPLIT = 9;

const INT32_MAX = 2 ** 31 - 1;
/** The library reads indices as integers of 32 bits. */
const INDEX_BITS_MAX = 32;
const DELTA_BITS_MAX = 64;

/** What the header says about the data of a page. */
export interface PageData {
  /** Number of values, with the absent ones. */
  readonly count: number;
  readonly encoding: number;
  /** Only in version 2, where the levels are not compressed, and precede the values. */
  readonly levels?: {
    readonly repetitionBytes: number;
    readonly definitionBytes: number;
    readonly nulls: number;
    readonly isCompressed: boolean;
  };
}

/** What the schema says about a column. */
export interface Leaf {
  readonly type: ColumnMetaData["type"];
  /** Bytes of a value, where its type does not say: in `FIXED_LEN_BYTE_ARRAY`. */
  readonly typeLength?: number | undefined;
  readonly repetitionBits: number;
  readonly definitionBits: number;
  readonly definitionMax: number;
}

/** The rest of the bytes that may be made of values that repeat parts of others. */
export interface ByteBudget {
  bytes: number;
}

export function leafOf(schema: FileMetaData["schema"], column: ColumnMetaData): Leaf {
  const path = getSchemaPath(schema, column.path_in_schema);
  const definitionMax = getMaxDefinitionLevel(path);
  return {
    type: column.type,
    typeLength: path.at(-1)!.element.type_length,
    repetitionBits: bitsOf(getMaxRepetitionLevel(path)),
    definitionBits: bitsOf(definitionMax),
    definitionMax,
  };
}

function bitsOf(max: number): number {
  return 32 - Math.clz32(max);
}

/**
 * Checks the levels of a page of version 2.
 *
 * @throws {Error} if a run is longer than the page has values.
 */
export function checkLevels(bytes: Uint8Array, data: PageData, leaf: Leaf): void {
  const walk = new Walk(bytes);
  if (leaf.repetitionBits > 0) walk.hybrid(data.count, leaf.repetitionBits);
  walk.at = data.levels!.repetitionBytes;
  if (leaf.definitionBits > 0) walk.hybrid(data.count, leaf.definitionBits);
}

/** Returns where the values of a page begin: after the levels in version 2. */
export function valuesStart({ levels }: PageData, { definitionBits }: Leaf): number {
  if (levels === undefined) return 0;
  // The library does not skip definition levels of a column that needs none.
  return levels.repetitionBytes + (definitionBits > 0 ? levels.definitionBytes : 0);
}

/**
 * Checks the decompressed values of a page, and before them its levels in version 1.
 *
 * @throws {LeatError} `resource_exhausted` if the values need more than the rest of `budget`.
 * @throws {Error} if a run or a number is longer than it can be.
 */
export function checkValues(
  bytes: Uint8Array,
  data: PageData,
  leaf: Leaf,
  budget: ByteBudget,
): void {
  const { encoding, levels } = data;
  const walk = new Walk(bytes);
  const nulls = levels === undefined ? walk.levels(data, leaf) : levels.nulls;
  const count = data.count - nulls;
  switch (encoding) {
    case RLE:
    case PLAIN_DICTIONARY:
    case RLE_DICTIONARY:
      return walk.indices(count, data, leaf);
    case DELTA_BINARY_PACKED:
    case DELTA_LENGTH_BYTE_ARRAY:
      return walk.deltas(count);
    case DELTA_BYTE_ARRAY:
      return walk.prefixed(count, budget);
    case BYTE_STREAM_SPLIT:
      return walk.split(count, leaf);
  }
}

class Walk extends ByteWalk {
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    super(bytes, "its values");
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Walks the levels of a page of version 1. Returns the number of absent values, 0 if plain. */
  levels({ count, encoding }: PageData, leaf: Leaf): number {
    const { repetitionBits, definitionBits, definitionMax } = leaf;
    if (repetitionBits > 0) this.#prefixedHybrid(count, repetitionBits);
    if (definitionBits === 0) return 0;
    const reader = { view: this.#view, offset: this.at };
    this.#prefixedHybrid(count, definitionBits);
    if (encoding === PLAIN) return 0;
    const definitions = new Array<number>(count);
    readRleBitPackedHybrid(reader, definitionBits, definitions);
    return definitions.reduce((nulls, level) => level === definitionMax ? nulls : nulls + 1, 0);
  }

  indices(count: number, { encoding, levels }: PageData, { type }: Leaf): void {
    const isVersion1 = levels === undefined;
    if (isVersion1 ? type === "BOOLEAN" : encoding === RLE) return this.#prefixedHybrid(count, 1);
    const bits = this.byte();
    if (bits > INDEX_BITS_MAX) throw new Error(`its indices have ${bits} bits`);
    if (bits > 0 || !isVersion1) this.hybrid(count, bits);
  }

  #prefixedHybrid(count: number, bits: number): void {
    const length = this.#view.getUint32(this.at, true);
    this.at += 4;
    const start = this.at;
    this.hybrid(count, bits);
    this.at = start + length;
  }

  /** Walks runs of equal values, and groups of 8 values. The last group may be filled up. */
  hybrid(count: number, bits: number): void {
    for (let seen = 0; seen < count;) {
      const header = this.varint();
      const isGroups = header % 2 === 1;
      const run = Math.floor(header / 2) * (isGroups ? 8 : 1);
      if (run >= count - seen + (isGroups ? 8 : 1)) {
        throw new Error(`a run of ${run} values is longer than the ${count - seen} that are left`);
      }
      // The library reads a byte even of no groups.
      this.at += isGroups ? Math.max(1, run * bits / 8) : Math.ceil(bits / 8);
      seen += run;
    }
  }

  deltas(count: number): void {
    const blockValues = this.varint();
    const parts = this.varint();
    this.varint();
    this.varint();
    const partValues = blockValues / parts;
    if (!(partValues >= 8 && partValues % 8 === 0 && blockValues <= INT32_MAX)) {
      throw new Error(`its blocks have ${blockValues} values in ${parts} parts`);
    }
    for (let seen = 1; seen < count;) {
      this.varint();
      const widths = this.at;
      this.at += parts;
      if (this.at > this.bytes.length) throw this.endsWithin();
      for (let part = 0; part < parts && seen < count; part++) {
        const bits = this.bytes[widths + part]!;
        if (bits > DELTA_BITS_MAX) throw new Error(`its differences have ${bits} bits`);
        this.at += partValues * bits / 8;
        seen += partValues;
      }
    }
  }

  /** Walks values of which the first bytes come first: the library allocates them all at once. */
  split(count: number, { type, typeLength = 0 }: Leaf): void {
    const width = type === "FIXED_LEN_BYTE_ARRAY"
      ? typeLength
      : type === "INT64" || type === "DOUBLE"
      ? 8
      : 4;
    const left = this.bytes.length - this.at;
    // A negative length would pass a comparison with the product.
    if (width >= 0 && count * width <= left) return;
    throw new Error(
      `${count} values of ${width} bytes are more than the ${left} bytes that are left`,
    );
  }

  /** Walks values that begin with a part of the previous value: the library copies those. */
  prefixed(count: number, budget: ByteBudget): void {
    const prefixes = this.#lengths(count);
    const suffixes = this.#lengths(count);
    for (let i = 0; i < count; i++) {
      if (prefixes[i]! < 0 || suffixes[i]! < 0) throw new Error("a length in it is negative");
      if (prefixes[i]! > 0) budget.bytes -= prefixes[i]! + suffixes[i]!;
    }
    if (budget.bytes >= 0) return;
    throw new LeatError(
      "resource_exhausted",
      "its values repeat parts of others to more bytes than a row group may have " +
        "(ROW_GROUP_BYTES_MAX)",
    );
  }

  #lengths(count: number): Int32Array {
    const reader = { view: this.#view, offset: this.at };
    this.deltas(count);
    const lengths = new Int32Array(count);
    deltaBinaryUnpack(reader, count, lengths);
    this.at = reader.offset;
    return lengths;
  }
}
