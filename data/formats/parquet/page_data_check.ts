/**
 * Checks the levels and values of a page before hyparquet decodes them, because it trusts the counts
 * and lengths in them. A few bytes could make it run for ever, or fill the memory.
 *
 * The walk goes as far as the library's decoders, and skips exactly as many bytes as they read.
 */
import type { ColumnMetaData, FileMetaData } from "hyparquet";
import { Encodings } from "hyparquet/src/constants.js";
import { deltaBinaryUnpack } from "hyparquet/src/delta.js";
import { readRleBitPackedHybrid } from "hyparquet/src/encoding.js";
import {
  getMaxDefinitionLevel,
  getMaxRepetitionLevel,
  getSchemaPath,
} from "hyparquet/src/schema.js";
import { LeatError } from "../../../core/error.ts";
import { ByteWalk } from "../byte_walk.ts";

// The numbers of encodings in the header of a page.
const PLAIN = 0;
const PLAIN_DICTIONARY = 2;
const RLE = 3;
const DELTA_BINARY_PACKED = 5;
const DELTA_LENGTH_BYTE_ARRAY = 6;
const DELTA_BYTE_ARRAY = 7;
const RLE_DICTIONARY = 8;
const BYTE_STREAM_SPLIT = 9;

/** What the library decodes in both versions of data pages. */
const DECODED: ReadonlySet<number> = new Set([
  PLAIN,
  PLAIN_DICTIONARY,
  RLE,
  DELTA_BINARY_PACKED,
  DELTA_LENGTH_BYTE_ARRAY,
  RLE_DICTIONARY,
  BYTE_STREAM_SPLIT,
]);

const INT32_MAX = 2 ** 31 - 1;
/** How far a run of groups may go beyond the values of its page. DuckDB fills up groups of 256 values. */
const PADDING_VALUES_MAX = 1_024;
/** The library reads indices as integers of 32 bits. */
const INDEX_BITS_MAX = 32;
const DELTA_BITS_MAX = 64;

// Bytes in memory of what the library makes of a page, in addition to a reference for each value.
/** An array for a level of nesting, with the space that its first item gets. */
const LIST_BYTES = 192;
/** A `Uint8Array`. Its bytes are those of the page. */
const BLOCK_BYTES = 128;
/** The header of a text. */
const TEXT_BYTES = 24;
const BIGINT_BYTES = 24;
/** A number that is not an integer, in an array that holds nulls, too. */
const BOXED_NUMBER_BYTES = 16;

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
  readonly isText: boolean;
  readonly repetitionBits: number;
  readonly definitionBits: number;
  readonly definitionMax: number;
  /** How many arrays the library makes at most for a value, by its repetition level. */
  readonly listsMax: readonly number[];
  /** How many of them the library drops once the column is assembled: those of optional levels. */
  readonly droppedMax: readonly number[];
}

/** The rest of the bytes in memory that may be made of the values of a row group, besides references. */
export interface ByteBudget {
  bytes: number;
  /** Bytes of these that are free again once the column is assembled. */
  droppedBytes?: number;
}

export function leafOf(schema: FileMetaData["schema"], column: ColumnMetaData): Leaf {
  const path = getSchemaPath(schema, column.path_in_schema);
  const definitionMax = getMaxDefinitionLevel(path);
  const levels = path.map(({ element }) => element.repetition_type);
  const { converted_type: converted, logical_type: logical } = path.at(-1)!.element;
  return {
    type: column.type,
    typeLength: path.at(-1)!.element.type_length,
    isText: converted === "UTF8" || logical?.type === "STRING",
    repetitionBits: bitsOf(getMaxRepetitionLevel(path)),
    definitionBits: bitsOf(definitionMax),
    definitionMax,
    listsMax: listsMaxOf(levels, (level) => level !== "REQUIRED"),
    droppedMax: listsMaxOf(levels, (level) => level === "OPTIONAL"),
  };
}

/** A value that repeats a level gets new arrays only for the optional and repeated levels below it. */
function listsMaxOf(
  [, ...levels]: readonly (string | undefined)[],
  isCounted: (level: string | undefined) => boolean,
): number[] {
  let lists = [0];
  for (const [i, level] of levels.entries()) {
    const hasArray = level === "REPEATED" || level !== "REQUIRED" && i < levels.length - 1;
    if (hasArray && isCounted(level)) lists = lists.map((count) => count + 1);
    if (level === "REPEATED") lists.push(0);
  }
  return lists;
}

function bitsOf(max: number): number {
  return 32 - Math.clz32(max);
}

/** @throws {LeatError} `unimplemented` if the library does not decode the encoding of the page. */
export function checkEncoding({ encoding, levels }: PageData): void {
  if (DECODED.has(encoding)) return;
  const name = Encodings[encoding] ?? `with number ${encoding}`;
  if (encoding !== DELTA_BYTE_ARRAY) {
    const what = `the encoding ${name} is not supported; write the column in another one, as PLAIN`;
    throw new LeatError("unimplemented", what);
  }
  if (levels !== undefined) return;
  throw new LeatError(
    "unimplemented",
    `the encoding ${name} is supported only in data pages of version 2; write these (in PyArrow ` +
      'with data_page_version="2.0"), or the column in another encoding, as PLAIN',
  );
}

/**
 * Checks the levels of a page of version 2.
 *
 * @throws {LeatError} `resource_exhausted` if the page needs more than the rest of `budget`.
 * @throws {Error} if a run is longer than the page has values.
 */
export function checkLevels(
  bytes: Uint8Array,
  data: PageData,
  leaf: Leaf,
  budget: ByteBudget,
): void {
  new Walk(bytes).levels(data, leaf, budget);
}

/** Checks the entries of a dictionary. @throws {LeatError} as `checkLevels` does. */
export function checkEntries(entries: number, leaf: Leaf, budget: ByteBudget): void {
  spend(budget, entries * objectBytes(leaf, PLAIN, 0));
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
  const nulls = levels === undefined ? walk.levels(data, leaf, budget) : levels.nulls;
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

function spend(budget: ByteBudget, bytes: number): void {
  budget.bytes -= bytes;
  if (budget.bytes >= 0) return;
  throw new LeatError(
    "resource_exhausted",
    "its values take more memory than a row group may have (ROW_GROUP_BYTES_MAX); choose fewer " +
      "columns, or write smaller row groups",
  );
}

/** Bytes of one value in memory, besides a reference, in a page with this number of nulls. */
function objectBytes({ type, isText, definitionBits }: Leaf, encoding: number, nulls: number) {
  switch (type) {
    case "BYTE_ARRAY":
    case "FIXED_LEN_BYTE_ARRAY":
      // Equal values share the entry of a dictionary.
      if (encoding === PLAIN_DICTIONARY || encoding === RLE_DICTIONARY) return 0;
      return isText ? TEXT_BYTES : BLOCK_BYTES;
    case "INT96":
      return BIGINT_BYTES;
    case "INT64":
      // Values of a column without levels stay in a typed array.
      return definitionBits > 0 ? BIGINT_BYTES : 0;
    case "FLOAT":
    case "DOUBLE":
      return nulls > 0 ? BOXED_NUMBER_BYTES : 0;
    default:
      return 0;
  }
}

class Walk extends ByteWalk {
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    super(bytes, "its values");
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Walks the levels of a page, and counts the memory of its values. Returns how many are absent. */
  levels({ count, encoding, levels }: PageData, leaf: Leaf, budget: ByteBudget): number {
    const { repetitionBits, definitionBits, definitionMax, listsMax, droppedMax } = leaf;
    let [lists, dropped] = [count * listsMax[0]!, count * droppedMax[0]!];
    if (repetitionBits > 0) {
      [lists, dropped] = [0, 0];
      for (const level of this.#levels(count, repetitionBits, levels?.repetitionBytes)) {
        lists += listsMax[level] ?? 0;
        dropped += droppedMax[level] ?? 0;
      }
    }
    if (levels !== undefined) this.at = levels.repetitionBytes;
    let nulls = 0;
    if (definitionBits > 0) {
      const definitions = this.#levels(count, definitionBits, levels?.definitionBytes);
      for (const level of definitions) if (level !== definitionMax) nulls++;
      if (levels !== undefined && nulls !== levels.nulls) {
        throw new Error(`its header claims ${levels.nulls} absent values, and its levels ${nulls}`);
      }
    }
    const objects = (count - nulls) * objectBytes(leaf, encoding, nulls);
    budget.droppedBytes = (budget.droppedBytes ?? 0) + dropped * LIST_BYTES;
    spend(budget, lists * LIST_BYTES + objects);
    return nulls;
  }

  /** @param byteLength Of the levels; `undefined` in version 1, where it precedes them. */
  #levels(count: number, bits: number, byteLength: number | undefined): Int32Array {
    const reader = { view: this.#view, offset: this.at };
    if (byteLength === undefined) this.#prefixedHybrid(count, bits);
    else this.hybrid(count, bits);
    const levels = new Int32Array(count);
    readRleBitPackedHybrid(reader, bits, levels, byteLength);
    return levels;
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

  /** Walks runs of equal values, and groups of 8 values. The last groups may be filled up. */
  hybrid(count: number, bits: number): void {
    for (let seen = 0; seen < count;) {
      const header = this.varint();
      const isGroups = header % 2 === 1;
      const run = Math.floor(header / 2) * (isGroups ? 8 : 1);
      if (run >= count - seen + (isGroups ? PADDING_VALUES_MAX : 1)) {
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
    let repeated = 0;
    for (let i = 0; i < count; i++) {
      if (prefixes[i]! < 0 || suffixes[i]! < 0) throw new Error("a length in it is negative");
      if (prefixes[i]! > 0) repeated += prefixes[i]! + suffixes[i]!;
    }
    spend(budget, repeated);
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
