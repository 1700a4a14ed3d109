/** Reads Arrow IPC files and streams, by record batches. */
import {
  AsyncRecordBatchFileReader,
  type AsyncRecordBatchStreamReader,
  compressionRegistry,
  CompressionType,
  type RecordBatch,
  RecordBatchReader,
} from "apache-arrow";
import { checkColumn, limitDictionaries, rowsHeld } from "./arrow_checks.ts";
import { checkMapKeys, vectorValues } from "./arrow_values.ts";
import { unlz4, unzstd } from "../compression/bounded_codecs.ts";
import { ByteRanges } from "../byte_ranges.ts";
import { chosenColumns, columnRows, type LoadedColumn } from "../column_rows.ts";
import type { SourceFile } from "../format_reader.ts";
import { equalParts, type RowBlocks } from "../row_blocks.ts";
// Must be imported before any message is read.
import "./flatbuffer_limits.ts";

const MAGIC = "ARROW1";
/** The begin of Feather's own format. Version 2 is an Arrow file. */
const FEATHER_MAGIC = "FEA1";
/** A file ends with the length of the footer and the magic. */
const FOOTER_END_BYTES = 4 + MAGIC.length;
/** A file begins with the magic, padded to 8 bytes. */
const SMALLEST_FILE_BYTES = 8 + FOOTER_END_BYTES;

/** Bytes that the footer has for each record batch. */
const BLOCK_BYTES = 24;

/**
 * Maximum decompressed bytes of the buffers of one record batch, which are all held in memory. Also
 * the maximum bytes of the dictionary entries that a list repeats, and of all dictionaries unless the
 * file is larger.
 */
const ARROW_BATCH_BYTES_MAX = 2 * 1024 * 1024 * 1024;

/**
 * The rest of that limit for the current batch, which is decompressed synchronously. A module
 * variable, because the library passes no context to the codec.
 */
let remainingBytes: number | undefined;

/**
 * Decompresses buffers. The length that a file says before each is not checked: Arrow's JavaScript
 * library writes the compressed length there, instead of the decompressed one.
 */
function codecOf(decompress: typeof unzstd): { decode(data: Uint8Array): Uint8Array } {
  return {
    decode(data) {
      if (remainingBytes === undefined) Promise.resolve().then(() => remainingBytes = undefined);
      remainingBytes ??= ARROW_BATCH_BYTES_MAX;
      const bytes = decompress(data, remainingBytes, "ARROW_BATCH_BYTES_MAX");
      remainingBytes -= bytes.length;
      return bytes;
    },
  };
}

compressionRegistry.set(CompressionType.LZ4_FRAME, codecOf(unlz4));
compressionRegistry.set(CompressionType.ZSTD, codecOf(unzstd));

type Reader = AsyncRecordBatchFileReader | AsyncRecordBatchStreamReader;

/**
 * Opens the record batches of a file or a stream. Reads the footer of the file, or the schema at the
 * beginning of the stream.
 *
 * @param columns Names at the top level of the schema; default: all.
 * @param dictionaryBytesMax Maximum bytes of all dictionaries, unless the file is larger.
 * @throws {LeatError} `data_loss` for a file that is damaged or of another format; `not_found` for
 * a column that the file does not have; `unimplemented` for a schema with {@linkcode UNREAD_TYPES}.
 */
export async function openArrow(
  source: SourceFile,
  columns: readonly string[] | undefined,
  dictionaryBytesMax = ARROW_BATCH_BYTES_MAX,
): Promise<RowBlocks> {
  const bytes = ByteRanges.of("Arrow", source);
  if (bytes.sizeBytes === 0) throw bytes.damaged("it is empty");
  const magic = await magicOf(bytes);
  if (magic.startsWith(FEATHER_MAGIC)) {
    throw bytes.unsupported("it is a Feather file of version 1; write it in version 2");
  }
  if (magic === MAGIC) await checkEnd(bytes);
  try {
    const handle = new Handle(bytes);
    const reader = await RecordBatchReader.from(handle.forLibrary()) as Reader;
    handle.limitDictionaries(reader, Math.max(dictionaryBytesMax, bytes.sizeBytes));
    await reader.open({ autoDestroy: false });
    if (!(reader instanceof AsyncRecordBatchFileReader)) handle.readForwards();
    if (reader.schema === undefined) throw new Error("there is none");
    if (reader.numRecordBatches * BLOCK_BYTES > bytes.sizeBytes) {
      throw new Error(`${reader.numRecordBatches} record batches are more than it can hold`);
    }
    const names = reader.schema.fields.map(({ name }) => name);
    const chosen = chosenColumns(bytes, names, columns, { wanted: source.wantedFields });
    return arrowBlocks(bytes, reader, chosen);
  } catch (error) {
    const type = unreadType(error);
    if (type !== undefined) {
      const [name, plain] = type;
      throw bytes.unsupported(
        `a column has the type ${name}; cast it to ${plain} before it is written`,
      );
    }
    throw bytes.failed("its schema", error);
  }
}

/** Types of the format that the library does not read, by their number in a schema, and what holds the same. */
const UNREAD_TYPES = new Map([
  [21, ["large_list", "list"]],
  [22, ["run_end_encoded", "the type of its values"]],
  [23, ["binary_view", "binary"]],
  [24, ["string_view", "string"]],
  [25, ["list_view", "list"]],
  [26, ["large_list_view", "list"]],
]);

/** The type because of which the library refused a schema. */
function unreadType(error: unknown): readonly string[] | undefined {
  const [, number] = /^Unrecognized type: .*\((\d+)\)$/.exec((error as Error).message) ?? [];
  return number === undefined ? undefined : UNREAD_TYPES.get(Number(number));
}

async function magicOf(bytes: ByteRanges): Promise<string> {
  return new TextDecoder().decode(await bytes.read(0, Math.min(MAGIC.length, bytes.sizeBytes)));
}

async function checkEnd(bytes: ByteRanges): Promise<void> {
  const { sizeBytes } = bytes;
  if (sizeBytes >= SMALLEST_FILE_BYTES) {
    const end = await bytes.read(sizeBytes - FOOTER_END_BYTES, sizeBytes);
    if (new TextDecoder().decode(end.subarray(-MAGIC.length)) === MAGIC) {
      const footerBytes = new DataView(end.buffer).getInt32(0, true);
      if (footerBytes > 0 && footerBytes <= sizeBytes - SMALLEST_FILE_BYTES) return;
      throw bytes.damaged(`its footer claims ${footerBytes} bytes`);
    }
  }
  throw bytes.damaged(`it begins with ${MAGIC}, but does not end with it; it is truncated`);
}

/** The part of Node's `FileHandle` that the library uses. */
class Handle {
  readonly fd = 0;
  readonly #bytes: ByteRanges;
  /**
   * The minimum start of the next read of a stream. Without this limit, a damaged length could make the
   * library read the same bytes for ever.
   */
  #startMin = 0;
  #isStream = false;
  #checkDictionaries = () => {};

  constructor(bytes: ByteRanges) {
    this.#bytes = bytes;
  }

  forLibrary(): Parameters<typeof RecordBatchReader.from>[0] {
    return this as unknown as Parameters<typeof RecordBatchReader.from>[0];
  }

  /** After this call, no read may begin before the end of the previous one. */
  readForwards(): void {
    this.#isStream = true;
  }

  /** Limits the bytes of the reader's dictionaries. A schema within a stream makes others. */
  limitDictionaries(reader: Reader, bytesMax: number): void {
    let limited: Reader["dictionaries"] | undefined;
    this.#checkDictionaries = () => {
      if (reader.dictionaries === limited) return;
      limited = reader.dictionaries;
      limitDictionaries(limited, bytesMax);
    };
  }

  stat() {
    return Promise.resolve({ size: this.#bytes.sizeBytes });
  }

  async read(into: Uint8Array, offset: number, length: number, position: number) {
    this.#checkDictionaries();
    if (this.#isStream && position < this.#startMin) {
      throw new Error(`a length in it points back to byte ${position}`);
    }
    if (this.#isStream) this.#startMin = position + length;
    await this.#bytes.readInto(into.subarray(offset, offset + length), position);
    return { bytesRead: length, buffer: into };
  }

  close() {
    return Promise.resolve();
  }
}

/**
 * Reads the record batches of a file or a stream. A row is an object of the chosen columns, in the
 * chosen order. A batch is read whole, because its columns are views of it.
 */
function arrowBlocks(bytes: ByteRanges, reader: Reader, columns: readonly string[]): RowBlocks {
  const isFile = reader instanceof AsyncRecordBatchFileReader;
  const batches = isFile ? batchOf(reader) : batchesOf(reader);
  return {
    ...(isFile ? equalParts(reader.numRecordBatches, 1) : equalParts(Infinity, Infinity)),
    async *read(block) {
      const name = `record batch ${block}`;
      try {
        for await (const batch of batches(block)) {
          if (batch === undefined) {
            yield;
            continue;
          }
          // For a stream without batches the library makes one whose structs have no parts.
          const loaded = batch.numRows === 0 ? [] : loadedColumns(bytes, batch, columns);
          return columnRows(batch.numRows, loaded, bytes, name);
        }
        return undefined;
      } catch (error) {
        throw bytes.failed(name, error);
      }
    },
  };
}

function loadedColumns(
  bytes: ByteRanges,
  batch: RecordBatch,
  columns: readonly string[],
): LoadedColumn[] {
  const { numRows } = batch;
  return columns.map((name) => {
    const vector = batch.getChild(name)!;
    // The library treats missing bytes as null.
    const held = rowsHeld(vector.data[0]!);
    if (held < numRows) throw new Error(`it has ${numRows} rows, and ${held} in column ${name}`);
    checkColumn(vector.data[0]!, ARROW_BATCH_BYTES_MAX);
    try {
      checkMapKeys(vector.type);
      return { name, valueAt: vectorValues(vector) };
    } catch (error) {
      throw bytes.failed(`column ${name}`, error);
    }
  });
}

/** Yields a batch. Before it, yields `undefined` for each batch of a stream that is skipped. */
type Batches = (block: number) => AsyncGenerator<RecordBatch | undefined>;

function batchOf(reader: AsyncRecordBatchFileReader): Batches {
  return async function* (block) {
    const batch = await reader.readRecordBatch(block);
    if (batch === null) throw new Error("there is none where the footer says");
    yield batch;
  };
}

function batchesOf(reader: AsyncRecordBatchStreamReader): Batches {
  /** The number of the next batch; `undefined` after the last one. */
  let next: number | undefined = 0;
  return async function* (block) {
    while (next !== undefined && next <= block) {
      const number: number = next;
      // A stream cannot continue after an error.
      next = undefined;
      const { done, value } = await reader.next();
      if (done) return;
      next = number + 1;
      yield number === block ? value : undefined;
    }
  };
}
