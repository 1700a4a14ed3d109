/** Reads NumPy's .npz archives: .npy files in a zip file. An element has one row of each array. */
import { type FileEntry, Reader, Uint8ArrayWriter, ZipReader } from "@zip.js/zip.js";
import { LeatError } from "../../../core/error.ts";
import { shownText } from "../../../core/shown_text.ts";
import { ByteRanges, memoryFile } from "../byte_ranges.ts";
import { chosenColumns, columnRows, type LoadedColumn } from "../column_rows.ts";
import type { SourceFile } from "../format_reader.ts";
import { BLOCKS_PER_PART, NpyFile, rowsPerBlock } from "./npy.ts";
import { readNpyHeader } from "./npy_header.ts";
import { equalParts, type RowBlocks } from "../row_blocks.ts";

/** Maximum decompressed bytes of the chosen compressed arrays of an archive: all are held in memory. */
const NPZ_INFLATED_BYTES_MAX = 1024 * 1024 * 1024;

/** Maximum number of files in an archive. With its array, each takes up to 40 KB of memory. */
const NPZ_FILES_MAX = 16_384;

/** Limit of an archive's directory. Parsed, it takes up to 40 times its bytes, and 5 KB an entry. */
const DIRECTORY_BYTES_MAX = 16 * 1024 * 1024;

const STORED = 0;
const DEFLATED = 8;
const LOCAL_HEADER_BYTES = 30;
const SUFFIX = ".npy";

/** The directory of an archive and the chosen arrays. */
export class NpzArchive {
  readonly #bytes: ByteRanges;
  readonly #entries: readonly FileEntry[];

  private constructor(bytes: ByteRanges, entries: readonly FileEntry[]) {
    this.#bytes = bytes;
    this.#entries = entries;
  }

  /**
   * Reads the directory.
   *
   * @param names Names of arrays, without `.npy`; default: all.
   * @throws {LeatError} `data_loss` for a damaged archive, `not_found` for a missing array,
   * `unimplemented` for an array that is encrypted or not compressed with deflate.
   */
  static async open(source: SourceFile, names: readonly string[] | undefined): Promise<NpzArchive> {
    const bytes = ByteRanges.of(".npz", source);
    if (bytes.sizeBytes === 0) throw bytes.damaged("it is empty");
    const arrays = await readDirectory(bytes);
    const chosen = chosenColumns(bytes, [...arrays.keys()], names, { what: "array" });
    if (chosen.length === 0) throw bytes.damaged("it has no arrays, which are files named *.npy");
    const archive = new NpzArchive(bytes, chosen.map((name) => arrays.get(name)!));
    archive.#checkEntries();
    return archive;
  }

  /** Whether all chosen arrays are uncompressed, so that rows can be read directly from the file. */
  get isStored(): boolean {
    return this.#entries.every((entry) => entry.compressionMethod === STORED);
  }

  /**
   * Opens the rows of the arrays.
   *
   * @throws {LeatError} `invalid_argument` if the arrays differ in length, `data_loss` for a
   * damaged array, and otherwise like {@linkcode readNpyHeader}.
   */
  async blocks(): Promise<RowBlocks> {
    const arrays = new Map<string, NpyFile>();
    for (const entry of this.#entries) {
      const bytes = await this.#open(entry);
      const name = entry.filename.slice(0, -SUFFIX.length);
      arrays.set(name, new NpyFile(bytes, await readNpyHeader(bytes)));
    }
    this.#checkLengths(arrays);
    return npzBlocks(this.#bytes, arrays, this.isStored);
  }

  #checkEntries(): void {
    let inflatedBytes = 0, storedBytes = 0;
    for (const { filename, encrypted, compressionMethod, uncompressedSize } of this.#entries) {
      if (encrypted) throw this.#bytes.unsupported(`${shownText(filename)} in it is encrypted`);
      if (compressionMethod !== STORED && compressionMethod !== DEFLATED) {
        throw this.#bytes.unsupported(
          `${shownText(filename)} in it is compressed by method ${compressionMethod}, ` +
            `not ${DEFLATED} (deflate)`,
        );
      }
      if (compressionMethod === DEFLATED) inflatedBytes += uncompressedSize;
      else storedBytes += uncompressedSize;
    }
    // Many entries may name the same bytes, and each is read into memory of its own.
    if (storedBytes > this.#bytes.sizeBytes) {
      throw this.#bytes.damaged(
        `its uncompressed arrays claim ${storedBytes} bytes, more than it has`,
      );
    }
    if (inflatedBytes <= NPZ_INFLATED_BYTES_MAX) return;
    throw this.#bytes.refused(
      "resource_exhausted",
      `The compressed arrays of ${this.#bytes.path} have ${inflatedBytes} bytes, more than ` +
        `${NPZ_INFLATED_BYTES_MAX} (NPZ_INFLATED_BYTES_MAX); choose fewer with \`columns\`, or save them ` +
        "with np.savez.",
    );
  }

  #checkLengths(arrays: ReadonlyMap<string, NpyFile>): void {
    const lengths = [...arrays].map(([name, { length }]) => `${shownText(name)} ${length}`);
    if (new Set([...arrays.values()].map(({ length }) => length)).size === 1) return;
    throw this.#bytes.refused(
      "invalid_argument",
      `The arrays of ${this.#bytes.path} must have the same number of rows, but have: ` +
        `${lengths.join(", ")}. Choose some with \`columns\`.`,
    );
  }

  async #open(entry: FileEntry): Promise<ByteRanges> {
    const path = `${shownText(entry.filename)} in ${this.#bytes.path}`;
    if (entry.compressionMethod === STORED) {
      return this.#bytes.within(path, await this.#dataOffset(entry), entry.uncompressedSize);
    }
    try {
      const inflated = await entry.getData(new Uint8ArrayWriter(), {
        checkSignature: true,
        useWebWorkers: false,
      });
      return new ByteRanges(this.#bytes.format, path, memoryFile(inflated));
    } catch (error) {
      throw this.#bytes.failed(`${shownText(entry.filename)} in it`, error);
    }
  }

  /** Returns the offset of an uncompressed entry's contents, which follow a local header of any length. */
  async #dataOffset({ offset }: FileEntry): Promise<number> {
    const header = await this.#bytes.read(offset, offset + LOCAL_HEADER_BYTES);
    const view = new DataView(header.buffer);
    return offset + LOCAL_HEADER_BYTES + view.getUint16(26, true) + view.getUint16(28, true);
  }
}

/** The arrays of an archive by name. */
async function readDirectory(bytes: ByteRanges): Promise<ReadonlyMap<string, FileEntry>> {
  const arrays = new Map<string, FileEntry>();
  let count = 0;
  try {
    const reader = new ZipReader(new RangesReader(bytes), { useWebWorkers: false });
    for await (const entry of reader.getEntriesGenerator()) {
      if (++count > NPZ_FILES_MAX) {
        const what =
          `it has more than ${NPZ_FILES_MAX} files (NPZ_FILES_MAX); save fewer arrays in ` +
          "each archive";
        throw new LeatError("resource_exhausted", what);
      }
      if (entry.directory || !entry.filename.endsWith(SUFFIX)) continue;
      const name = entry.filename.slice(0, -SUFFIX.length);
      if (arrays.has(name)) throw bytes.damaged(`it has two arrays named ${shownText(name)}`);
      arrays.set(name, entry);
    }
  } catch (error) {
    throw bytes.failed("its directory", error);
  }
  return arrays;
}

/** Lets the zip library read a file. It reads the directory at once, and contents in small chunks. */
class RangesReader extends Reader<ByteRanges> {
  readonly #bytes: ByteRanges;

  constructor(bytes: ByteRanges) {
    super(bytes);
    this.#bytes = bytes;
    this.size = bytes.sizeBytes;
  }

  override async readUint8Array(index: number, length: number): Promise<Uint8Array> {
    if (length > DIRECTORY_BYTES_MAX) {
      const what = `${length} bytes, more than ${DIRECTORY_BYTES_MAX} (DIRECTORY_BYTES_MAX)`;
      throw new LeatError("resource_exhausted", what);
    }
    return await this.#bytes.read(index, Math.min(index + length, this.size));
  }
}

/** Combines the rows of arrays of equal length to objects. */
function npzBlocks(
  bytes: ByteRanges,
  arrays: ReadonlyMap<string, NpyFile>,
  isDivided: boolean,
): RowBlocks {
  const files = [...arrays.values()];
  const { length } = files[0]!;
  const perBlock = rowsPerBlock(files.reduce((sum, file) => sum + file.rowBytes, 0));
  return {
    ...equalParts(Math.ceil(length / perBlock), isDivided ? BLOCKS_PER_PART : Infinity),
    expect(start, stop) {
      for (const file of files) file.expect(start * perBlock, stop * perBlock);
    },
    async *read(block) {
      const start = block * perBlock;
      const stop = Math.min(start + perBlock, length);
      if (start >= stop) return undefined;
      const columns: LoadedColumn[] = [];
      for (const [name, file] of arrays) {
        const rows = await file.readRows(start, stop);
        columns.push({ name, valueAt: (row) => rows.at(row) });
        yield;
      }
      return columnRows(stop - start, columns, bytes, `the rows from ${start}`);
    },
  };
}
