/** Reads Parquet files by row groups, and only the chosen columns. */
import {
  type ColumnMetaData,
  type Compressors,
  type DecodedArray,
  type FileMetaData,
  flatten,
  parquetMetadata,
  type ParquetParsers,
  parquetRead,
  parquetSchema,
  type RowGroup,
  type SchemaTree,
} from "hyparquet";
import { compressors as libraries } from "hyparquet-compressors";
import { utf8Text } from "../../../core/bytes.ts";
import { unbrotli, unzstd } from "../compression/bounded_codecs.ts";
import { ByteRanges } from "../byte_ranges.ts";
import { chosenColumns, columnRows, type LoadedColumn } from "../column_rows.ts";
import type { SourceFile } from "../format_reader.ts";
import {
  type ByteBudget,
  checkEntries,
  checkLevels,
  checkValues,
  type Leaf,
  leafOf,
  valuesStart,
} from "./page_data_check.ts";
import { unlz4Block, unlz4Hadoop } from "../compression/lz4_blocks.ts";
import { checkPages, PAGES_MAX } from "./parquet_pages.ts";
import { type ColumnPiece, piecesOf } from "./parquet_pieces.ts";
import { thriftEnd } from "./thrift_check.ts";
import { type ParquetValues, PARSERS, plainSchema, valuesOf } from "./parquet_values.ts";
import type { RowBlocks, Rows } from "../row_blocks.ts";

/**
 * Maximum bytes of the chosen columns of one row group, compressed or not: all are held in memory. Also
 * the maximum of what the lists in a row repeat of a dictionary.
 */
export const ROW_GROUP_BYTES_MAX = 2 * 1024 * 1024 * 1024;

/**
 * Bytes in memory of one value of any type: a reference, or a number. They count too, because a
 * billion equal values may take only a few bytes in the file. What a reference refers to counts when
 * its page is checked.
 */
const VALUE_BYTES = 8;

/**
 * Maximum nesting of a schema's groups. The library keeps the whole path of each, so deep ones take
 * memory with the square of their bytes.
 */
export const SCHEMA_DEPTH_MAX = 128;

/** Bytes of the first read, from the end of the file. A longer footer is read again as a whole. */
export const FOOTER_BYTES = 64 * 1024;

/** Maximum bytes of neighbouring columns that are read together, and then copied apart. */
const JOINED_BYTES_MAX = 8 * 1024 * 1024;

/**
 * Bytes of one part of a file: large enough that reading a part takes much longer than opening the file.
 * A part has at least one row group.
 */
const PART_BYTES = 16 * 1024 * 1024;

const MAGIC_BYTES = 4;
/** A file ends with the length of the footer and the magic. */
const FOOTER_END_BYTES = 8;
/** The magic at both ends, and the length of the footer. */
const SMALLEST_FILE_BYTES = 12;

/**
 * Replaces the library's codecs of brotli and zstd, which do not limit their output, and its LZ4, which
 * is wrong.
 */
const compressors: Compressors = {
  ...libraries,
  BROTLI: (data, bytes) => unbrotli(data, bytes, "as its page says"),
  ZSTD: (data, bytes) => unzstd(data, bytes, "as its page says"),
  LZ4: unlz4Hadoop,
  LZ4_RAW: unlz4Block,
};

/** Statistics are not used, and a text in them may end within a character. */
const FOOTER_PARSERS: ParquetParsers = { ...PARSERS, stringFromBytes: () => undefined };

interface Column {
  readonly name: string;
  /** The root and this column: the library walks the whole schema for each column that it decodes. */
  readonly schema: FileMetaData["schema"];
  readonly values: ParquetValues;
  /** Whether each row has one value, not a list or a structure. */
  readonly isFlat: boolean;
}

/**
 * Opens the row groups of a file: reads its footer.
 *
 * @param columns Names at the top level of the schema; default: all.
 * @param partBytes Limit of the bytes of a part, of all columns, because columns do not change the parts.
 * @throws {LeatError} `data_loss` for a damaged or truncated file, `unimplemented` for an encrypted
 * one, `not_found` for a column that the file does not have.
 */
export async function openParquet(
  source: SourceFile,
  columns: readonly string[] | undefined,
  partBytes = PART_BYTES,
): Promise<ParquetBlocks> {
  const bytes = ByteRanges.of("Parquet", source);
  await checkMagic(bytes);
  const metadata = await readMetadata(bytes);
  try {
    const { children } = parquetSchema(metadata);
    const schemas = columnSchemas(plainSchema(metadata.schema), children);
    const names = children.map(({ element }) => element.name);
    const trees = new Map(children.toReversed().map((tree) => [tree.element.name, tree]));
    const chosen = chosenColumns(bytes, names, columns, { wanted: source.wantedFields }).map(
      (name) => {
        const tree = trees.get(name)!;
        const isFlat = tree.children.length === 0 && tree.element.repetition_type !== "REPEATED";
        const values = valuesOf(tree, ROW_GROUP_BYTES_MAX);
        return { name, schema: schemas.get(tree)!, values, isFlat };
      },
    );
    return new ParquetBlocks(bytes, metadata, chosen, partBytes);
  } catch (error) {
    throw bytes.failed("its schema", error);
  }
}

/** Returns a schema of one column for each column. The file's has the root, and then the columns. */
function columnSchemas(
  [root, ...elements]: FileMetaData["schema"],
  trees: readonly SchemaTree[],
): ReadonlyMap<SchemaTree, FileMetaData["schema"]> {
  let start = 0;
  return new Map(trees.map((tree) => {
    const column = elements.slice(start, start += tree.count);
    return [tree, [{ ...root!, num_children: 1 }, ...column]];
  }));
}

async function checkMagic(bytes: ByteRanges): Promise<void> {
  const { sizeBytes } = bytes;
  if (sizeBytes === 0) throw bytes.damaged("it is empty");
  if (sizeBytes < SMALLEST_FILE_BYTES) throw bytes.damaged(`it has only ${sizeBytes} bytes`);
  const magic = utf8Text(await bytes.read(sizeBytes - MAGIC_BYTES, sizeBytes));
  if (magic === "PARE") throw bytes.unsupported("its footer is encrypted");
  if (magic !== "PAR1") {
    throw bytes.damaged("it does not end with PAR1; it is truncated, or of another format");
  }
}

async function readMetadata(bytes: ByteRanges): Promise<FileMetaData> {
  try {
    const tail = await readTail(bytes);
    thriftEnd(tail.subarray(0, -FOOTER_END_BYTES));
    const metadata = parquetMetadata(tail.buffer, { parsers: FOOTER_PARSERS, geoparquet: false });
    checkDepth(metadata.schema);
    return metadata;
  } catch (error) {
    throw bytes.failed("its footer", error);
  }
}

/** A schema lists groups before their children. */
function checkDepth(schema: FileMetaData["schema"]): void {
  /** How many children each open group still lacks. */
  const lacking: number[] = [];
  for (const { num_children = 0 } of schema) {
    while (lacking.at(-1) === 0) lacking.pop();
    if (lacking.length > 0) lacking[lacking.length - 1]!--;
    lacking.push(num_children);
    if (lacking.length > SCHEMA_DEPTH_MAX) {
      throw new Error(`its schema nests more than ${SCHEMA_DEPTH_MAX} deep`);
    }
  }
}

/** Reads the footer and what follows it. A short footer takes one read. */
async function readTail(bytes: ByteRanges): Promise<Uint8Array<ArrayBuffer>> {
  const { sizeBytes } = bytes;
  const end = await bytes.read(Math.max(0, sizeBytes - FOOTER_BYTES), sizeBytes);
  const length = FOOTER_END_BYTES +
    new DataView(end.buffer).getUint32(end.length - FOOTER_END_BYTES, true);
  if (length <= end.length) return end.slice(-length);
  if (length > sizeBytes) throw new Error(`it claims ${length - FOOTER_END_BYTES} bytes`);
  return await bytes.read(sizeBytes - length, sizeBytes);
}

function bigMax(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

/**
 * Reads the row groups of a file. A row is an object of the chosen columns, in the chosen order.
 *
 * The bytes of the chosen columns are read first, concurrently except those of neighbours, then decoded
 * column by column. A long column is decoded in pieces, so that the thread can do other work in between.
 */
class ParquetBlocks implements RowBlocks {
  readonly #bytes: ByteRanges;
  readonly #metadata: FileMetaData;
  readonly #columns: readonly Column[];
  /** The first row group of each part, and the number of row groups. */
  readonly #partStarts: readonly number[];

  constructor(
    bytes: ByteRanges,
    metadata: FileMetaData,
    columns: readonly Column[],
    partBytes: number,
  ) {
    this.#bytes = bytes;
    this.#metadata = metadata;
    this.#columns = columns;
    this.#partStarts = partStartsOf(metadata.row_groups, partBytes);
  }

  get partCount(): number {
    return this.#partStarts.length - 1;
  }

  partStart(part: number): number {
    return this.#partStarts[part]!;
  }

  /** Chosen columns far from one another are better read by themselves. */
  expect(start: number, stop: number): void {
    const groups = this.#metadata.row_groups.slice(start, stop);
    const [first, ...others] = neighboursOf(groups.flatMap((group) => this.#chosenOf(group)));
    if (first === undefined || others.length > 0) return;
    this.#bytes.expect(first[0]![0]!.start, first.at(-1)!.at(-1)!.stop);
  }

  get count(): number {
    return this.#metadata.row_groups.length;
  }

  async *read(block: number): AsyncGenerator<void, Rows | undefined> {
    const group = this.#metadata.row_groups[block];
    if (group === undefined) return undefined;
    const length = Number(group.num_rows);
    const chunks = await this.#readChunks(group, block).catch((error) => {
      throw this.#bytes.failed(`row group ${block}`, error);
    });
    const leaves = Map.groupBy(this.#chosenOf(group), columnOf);
    const loaded: LoadedColumn[] = [];
    const budget = { bytes: ROW_GROUP_BYTES_MAX, droppedBytes: 0 };
    for (const column of this.#columns) {
      const { name, values } = column;
      const rows = new Runs();
      try {
        for (const part of this.#partsOf(leaves.get(name) ?? [], group.num_rows, chunks, column)) {
          yield;
          rows.add(await this.#decode(part, column, budget));
        }
      } catch (error) {
        throw this.#bytes.failed(`row group ${block}, column ${name}`, error);
      }
      budget.bytes += budget.droppedBytes;
      budget.droppedBytes = 0;
      if (rows.length !== length) {
        throw this.#bytes.damaged(
          `row group ${block} has ${length} rows, and ${rows.length} in column ${name}`,
        );
      }
      loaded.push({ name, valueAt: (row) => values.convert(rows.at(row)) });
    }
    return columnRows(length, loaded, this.#bytes, `row group ${block}`);
  }

  /** Reads the bytes of the chosen columns. Returns them by their offset in the file. */
  async #readChunks(group: RowGroup, block: number): Promise<Map<number, ArrayBuffer>> {
    const found = this.#chosenOf(group);
    this.#checkEncryption(group);
    this.#checkChunks(found, block);
    const chunks = await Promise.all(
      neighboursOf(found).map((reads) => this.#readNeighbours(reads)),
    );
    return new Map(chunks.flat());
  }

  #chosenOf({ columns }: Pick<RowGroup, "columns">): ColumnMetaData[] {
    const chosen = new Set(this.#columns.map(({ name }) => name));
    return columns.flatMap(({ meta_data: column }) =>
      column !== undefined && chosen.has(columnOf(column)) ? [column] : []
    );
  }

  /** Reads neighbouring columns in order: far storage would request a range twice for concurrent reads. */
  async #readNeighbours(reads: Neighbours): Promise<[start: number, bytes: ArrayBuffer][]> {
    const chunks: [number, ArrayBuffer][] = [];
    for (const joined of reads) {
      const { start: first } = joined[0]!;
      const { buffer } = await this.#bytes.read(first, joined.at(-1)!.stop);
      for (const { start, stop } of joined) {
        const isAlone = joined.length === 1;
        chunks.push([start, isAlone ? buffer : buffer.slice(start - first, stop - first)]);
      }
    }
    return chunks;
  }

  #checkEncryption({ columns }: RowGroup): void {
    const encrypted = columns.filter(({ crypto_metadata }) => crypto_metadata !== undefined);
    const [first] = this.#chosenOf({ columns: encrypted });
    if (first === undefined) return;
    const name = first.path_in_schema.join(".");
    throw this.#bytes.unsupported(`column ${name} is encrypted; leave it out with \`columns\``);
  }

  #checkChunks(columns: readonly ColumnMetaData[], block: number): void {
    let sizeBytes = 0n;
    let storedBytes = 0n;
    for (const column of columns) {
      const { codec, path_in_schema: path, num_values: values } = column;
      const { total_uncompressed_size: bytes, total_compressed_size: stored } = column;
      if (codec !== "UNCOMPRESSED" && compressors[codec] === undefined) {
        const supported = Object.keys(compressors).join(", ");
        throw this.#bytes.unsupported(
          `column ${path.join(".")} is compressed with ${codec}; supported are ${supported}`,
        );
      }
      if (bytes < 0n || stored < 0n || values < 0n) {
        throw this.#bytes.damaged(
          `column ${path.join(".")} of row group ${block} claims ${stored} bytes, ${bytes} ` +
            `decompressed bytes and ${values} values`,
        );
      }
      storedBytes += stored;
      sizeBytes += bigMax(bigMax(bytes, stored), values * BigInt(VALUE_BYTES));
    }
    // Otherwise columns could share bytes, and each would hold them in memory.
    if (storedBytes > this.#bytes.sizeBytes) {
      throw this.#bytes.damaged(
        `the columns of row group ${block} claim ${storedBytes} bytes, and the file has ` +
          `${this.#bytes.sizeBytes}`,
      );
    }
    if (sizeBytes <= ROW_GROUP_BYTES_MAX) return;
    throw this.#bytes.refused(
      "resource_exhausted",
      `Row group ${block} of ${this.#bytes.path} has ${sizeBytes} bytes in the chosen columns, more than ` +
        `${ROW_GROUP_BYTES_MAX} (ROW_GROUP_BYTES_MAX); choose fewer columns, or write smaller row groups.`,
    );
  }

  /** Returns what is decoded at a time, in order: a piece of a flat column, or all leaves of a nested one. */
  #partsOf(
    columns: readonly ColumnMetaData[],
    rows: bigint,
    chunks: ReadonlyMap<number, ArrayBuffer>,
    { isFlat }: Column,
  ): Part[] {
    let pagesLeft = PAGES_MAX;
    const leaves = columns.map((column) => {
      const bytes = chunks.get(startOf(column))!;
      const pages = checkPages(bytes, column, ROW_GROUP_BYTES_MAX, pagesLeft);
      pagesLeft -= pages.length;
      return { bytes, column, pages };
    });
    const [leaf] = leaves;
    if (!isFlat || leaf === undefined) return [{ pieces: leaves, rows }];
    return piecesOf(leaf.bytes, leaf.column, leaf.pages).map((piece) => (
      { pieces: [piece], rows: piece.column.num_values }
    ));
  }

  async #decode(
    { pieces, rows }: Part,
    { name, schema }: Column,
    budget: ByteBudget,
  ): Promise<DecodedArray> {
    const checks = new PageChecks(budget);
    for (const piece of pieces) checks.add(piece, leafOf(schema, piece.column));
    const bytesAt = new Map(pieces.map(({ bytes, column }) => [startOf(column), bytes]));
    const columns = pieces.map(({ column }) => ({ file_offset: 0n, meta_data: column }));
    const group = { columns, num_rows: rows, total_byte_size: 0n };
    const decoded: DecodedArray[] = [];
    await parquetRead({
      file: {
        byteLength: this.#bytes.sizeBytes,
        slice: async (start, stop = this.#bytes.sizeBytes) =>
          bytesAt.get(start) ?? (await this.#bytes.read(start, stop)).buffer,
      },
      // A row group of only these pages, so that the library counts rows from the first of them.
      metadata: { ...this.#metadata, schema, row_groups: [group] },
      columns: [name],
      compressors: checks.compressors,
      parsers: PARSERS,
      utf8: false,
      onChunk: ({ columnData }) => decoded.push(columnData),
    });
    return flatten(decoded);
  }
}

/** Checks the data of pages: at once, or as soon as the library has decompressed them. */
class PageChecks {
  readonly compressors: Compressors;
  readonly #budget: ByteBudget;
  /** Checks of the compressed pages, by their ends in the bytes of a piece. */
  readonly #checks = new Map<ArrayBufferLike, Map<number, (values: Uint8Array) => void>>();

  constructor(budget: ByteBudget) {
    this.#budget = budget;
    this.compressors = Object.fromEntries(
      Object.entries(compressors).map(([codec, decompress]) => [codec, (data, sizeBytes) => {
        const values = decompress(data, sizeBytes);
        this.#checks.get(data.buffer)!.get(data.byteOffset + data.byteLength)!(values);
        return values;
      }]),
    );
  }

  add({ bytes, column, pages }: ColumnPiece, leaf: Leaf): void {
    const checks = this.#checks.get(bytes) ?? new Map<number, (values: Uint8Array) => void>();
    this.#checks.set(bytes, checks);
    for (const { data, dataStart, stop, entries } of pages) {
      // A page of two columns would get the check of one of them.
      if (checks.has(stop)) throw new Error("two of its columns share a page");
      const check = (values: Uint8Array) => data && checkValues(values, data, leaf, this.#budget);
      checks.set(stop, check);
      checkEntries(entries, leaf, this.#budget);
      if (data === undefined) continue;
      const stored = new Uint8Array(bytes, dataStart, stop - dataStart);
      if (data.levels !== undefined) checkLevels(stored, data, leaf, this.#budget);
      if (column.codec !== "UNCOMPRESSED" && data.levels?.isCompressed !== false) continue;
      check(stored.subarray(valuesStart(data, leaf)));
    }
  }
}

/** Pieces that are decoded together. */
interface Part {
  readonly pieces: readonly ColumnPiece[];
  readonly rows: bigint;
}

/** Joins several arrays of values to one. `at()` is fast if it is called in order. */
class Runs {
  length = 0;
  readonly #runs: DecodedArray[] = [];
  /** The run that was read last. */
  #current = 0;
  /** The index of that run's first value. */
  #start = 0;

  add(run: DecodedArray): void {
    this.#runs.push(run);
    this.length += run.length;
  }

  at(index: number): unknown {
    if (index < this.#start) this.#current = this.#start = 0;
    for (let run; index - this.#start >= (run = this.#runs[this.#current]!).length;) {
      this.#start += run.length;
      this.#current++;
    }
    return this.#runs[this.#current]![index - this.#start];
  }
}

/** Returns the name of the column to which a leaf belongs. */
function columnOf({ path_in_schema: [name] }: ColumnMetaData): string {
  return name!;
}

/** Returns the offset of a column's first page. Offset 0 means no page, because the magic is there. */
function startOf(column: ColumnMetaData): number {
  return Number(column.dictionary_page_offset || column.data_page_offset);
}

/** Groups row groups to parts of at most `partBytes` bytes, but at least one row group. */
function partStartsOf(groups: readonly RowGroup[], partBytes: number): number[] {
  const starts = [0];
  let bytes = 0;
  for (const [block, { columns }] of groups.entries()) {
    const groupBytes = columns.reduce(
      (sum, { meta_data }) => sum + Math.max(0, Number(meta_data?.total_compressed_size ?? 0)),
      0,
    );
    if (block > starts.at(-1)! && bytes + groupBytes > partBytes) {
      starts.push(block);
      bytes = 0;
    }
    bytes += groupBytes;
  }
  return [...starts, groups.length];
}

/** The bytes of one column in a row group. */
interface Chunk {
  readonly start: number;
  readonly stop: number;
}

/** Columns without gaps between them: those of each read together. */
type Neighbours = Chunk[][];

function neighboursOf(columns: readonly ColumnMetaData[]): Neighbours[] {
  const all: Neighbours[] = [];
  const chunks = columns.map((column) => {
    const start = startOf(column);
    return { start, stop: start + Number(column.total_compressed_size) };
  });
  for (const chunk of chunks.toSorted((a, b) => a.start - b.start)) {
    const joined = all.at(-1)?.at(-1);
    const last = joined?.at(-1);
    // In a damaged file a column may end before it starts.
    const isNext = last?.stop === chunk.start && last.start < last.stop;
    if (joined === undefined || !isNext) all.push([[chunk]]);
    else if (chunk.stop - joined[0]!.start <= JOINED_BYTES_MAX) joined.push(chunk);
    else all.at(-1)!.push([chunk]);
  }
  return all;
}
