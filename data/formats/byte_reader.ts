/** Reads a file sequentially in chunks, and decompresses it if necessary. */
import { shownPath } from "../../core/shown_text.ts";
import { then } from "../../core/then.ts";
import type { OpenFile } from "../host.ts";
import { ReadingFailure } from "../iterators/reading_failure.ts";
import { type ByteSource, byteSource } from "./byte_source.ts";
import {
  type Compression,
  compressionRemedy,
  SIGNATURE_BYTES_MAX,
} from "./compression/compression.ts";
import type { SourceFile } from "./format_reader.ts";
import { READ_BYTES } from "./plain_bytes.ts";

export { READ_BYTES };

/** Minimum size of the buffer, which is otherwise as large as a file below `READ_BYTES`. */
const BUFFER_BYTES_MIN = 1024;

/**
 * From this many bytes on, `takeCopy()` reads directly into the result, because copying them from the
 * buffer would take longer than one more read from the page cache.
 */
const DIRECT_BYTES_MIN = 32 * 1024;

/** Bytes read ahead after a direct read: few, because the next direct read must copy them. */
const READ_AHEAD_BYTES_MIN = 4 * 1024;

const EMPTY = new Uint8Array(0);

/** A buffer that moves along a file. Its methods return synchronously if the file's reads do. */
export class ByteReader {
  /** The file, for messages: without the secrets of a URL. */
  readonly path: string;
  /** What offsets in messages refer to: the file (`""`), or its decompressed contents. */
  readonly stream: string;
  readonly #isCompressed: boolean;
  readonly #source: ByteSource;
  readonly #sizeBytes: number;
  /** Allocated on first use: some files are read without it. */
  #buffer: Uint8Array<ArrayBuffer> = EMPTY;
  #start = 0;
  #stop = 0;
  /** The first bytes of the file, once it has been read from its start and the buffer has lost them. */
  #firstBytes: Uint8Array = EMPTY;
  #position: number;
  /** How many bytes the next read into the buffer asks for, at least. */
  #readAheadBytes = READ_BYTES;
  /** Whether the last read returned synchronously. Small reads then cost little. */
  #isSynchronous = false;
  #ended = false;
  #hasFailed = false;
  #closed = false;

  /**
   * @param offset Offset of the first byte to read. In a compressed file it counts decompressed bytes,
   * and everything before it is decompressed as well.
   */
  constructor(path: string, file: OpenFile, compression?: Compression, offset = 0) {
    this.path = shownPath(path);
    this.stream = compression === undefined ? "" : " of its decompressed contents";
    this.#isCompressed = compression !== undefined;
    this.#sizeBytes = compression === undefined ? file.sizeBytes : Infinity;
    this.#position = offset;
    this.#source = byteSource(this.path, file, compression, offset);
  }

  /** Opens the contents of a file at `offset`, decompressed. */
  static of({ path, file, compression }: SourceFile, offset = 0): ByteReader {
    return new ByteReader(path, file, compression, offset);
  }

  /** The offset of the next byte. */
  get position(): number {
    return this.#position;
  }

  /** The end of messages about damage: what to do if the file should have been decompressed, or `""`. */
  get remedy(): string {
    if (this.#isCompressed) return "";
    const first = this.#holdsFirstBytes ? this.#buffer : this.#firstBytes;
    return compressionRemedy(this.path, first);
  }

  /** Number of bytes in `buffer` from `start` on. */
  get available(): number {
    return this.#stop - this.#start;
  }

  /** The buffer itself. Valid until the next `fill` or `takeInto`. */
  get buffer(): Uint8Array<ArrayBuffer> {
    return this.#buffer;
  }

  /** Index of the next byte in `buffer`. */
  get start(): number {
    return this.#start;
  }

  /** Bytes left of the size that the file had when it was opened; `Infinity` if it is compressed. */
  get remaining(): number {
    return this.#sizeBytes - this.#position;
  }

  /**
   * Whether a read failed with a `ReadingFailure`. Formats save a position from which another reader
   * reads again what this one could not.
   */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Whether `close()` was called; then there are no more bytes. */
  get closed(): boolean {
    return this.#closed;
  }

  /**
   * Buffers at least `count` bytes, fewer only at the end of the file, and returns `available`. The
   * buffer grows to hold them, so callers must check `count` against a limit. A failed read drops the
   * buffered bytes and ends the reader.
   */
  fill(count: number): number | Promise<number> {
    while (this.available < count && !this.#ended) {
      this.#makeRoom(count);
      const wanted = Math.max(count, this.available + this.#readAheadBytes);
      this.#readAheadBytes = Math.min(2 * this.#readAheadBytes, READ_BYTES);
      const read = this.#read(this.#buffer.subarray(this.#stop, wanted));
      if (read instanceof Promise) return this.#fillLater(count, read);
      this.#stop += read;
    }
    return this.available;
  }

  skip(count: number): void {
    this.#start += count;
    this.#position += count;
  }

  /** Copies and skips `count` buffered bytes. A view would keep the whole buffer alive. */
  take(count: number): Uint8Array<ArrayBuffer> {
    const bytes = this.#buffer.slice(this.#start, this.#start + count);
    this.skip(count);
    return bytes;
  }

  /**
   * Copies and skips the next `count` bytes, buffered or not; fewer only at the end. Callers must
   * check `count` against a limit.
   */
  takeCopy(count: number): Uint8Array<ArrayBuffer> | Promise<Uint8Array<ArrayBuffer>> {
    const directMin = this.#isSynchronous ? DIRECT_BYTES_MIN : READ_BYTES;
    if (count >= directMin && count > this.available) return this.#takeDirectly(count);
    const filled = this.fill(count);
    return filled instanceof Promise
      ? filled.then((available) => this.take(Math.min(count, available)))
      : this.take(Math.min(count, filled));
  }

  /**
   * Fills `into` with the next bytes, without the buffer if possible, and returns how many there were;
   * fewer only at the end.
   */
  takeInto(into: Uint8Array): number | Promise<number> {
    let count = Math.min(into.length, this.available);
    into.set(this.#buffer.subarray(this.#start, this.#start + count));
    this.skip(count);
    while (count < into.length && !this.#ended) {
      const read = this.#read(into.subarray(count));
      if (read instanceof Promise) return this.#takeLater(into, count, read);
      this.#position += read;
      count += read;
    }
    return count;
  }

  /**
   * Skips `count` bytes, buffered or not, and returns how many there were; fewer only at the end. In
   * an uncompressed file it reads nothing.
   */
  pass(count: number): number | Promise<number> {
    const buffered = Math.min(count, this.available);
    this.skip(buffered);
    const unskipped = count - buffered;
    if (unskipped === 0 || this.#ended) return buffered;
    if (this.#source.skip === undefined) return this.#readPast(count, unskipped);
    const skipped = this.#source.skip(unskipped);
    this.#position += skipped;
    return buffered + skipped;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#end();
    this.#source.close();
  }

  #takeDirectly(count: number): Uint8Array<ArrayBuffer> | Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(count);
    const taken = this.takeInto(bytes);
    if (this.#isSynchronous) this.#readAheadBytes = READ_AHEAD_BYTES_MIN;
    return then(taken, (length) => bytes.subarray(0, length));
  }

  async #fillLater(count: number, pending: Promise<number>): Promise<number> {
    const read = await pending;
    if (!this.#closed) this.#stop += read;
    return await this.fill(count);
  }

  async #takeLater(into: Uint8Array, count: number, pending: Promise<number>): Promise<number> {
    const read = await pending;
    this.#position += read;
    return count + read + await this.takeInto(into.subarray(count + read));
  }

  async #readPast(count: number, unskipped: number): Promise<number> {
    while (unskipped > 0 && await this.fill(1) > 0) {
      const buffered = Math.min(unskipped, this.available);
      this.skip(buffered);
      unskipped -= buffered;
    }
    return count - unskipped;
  }

  #read(into: Uint8Array): number | Promise<number> {
    try {
      const read = this.#source.read(into);
      this.#isSynchronous = !(read instanceof Promise);
      if (read instanceof Promise) return this.#readLater(read);
      if (read === 0) this.#ended = true;
      return read;
    } catch (error) {
      return this.#fail(error);
    }
  }

  async #readLater(pending: Promise<number>): Promise<number> {
    try {
      const read = await pending;
      if (read === 0) this.#ended = true;
      return read;
    } catch (error) {
      // Closing the file cancels its reads.
      if (this.#closed) return 0;
      return this.#fail(error);
    }
  }

  #fail(error: unknown): never {
    this.#hasFailed = error instanceof ReadingFailure;
    this.#end();
    throw error;
  }

  #end(): void {
    this.#ended = true;
    this.#start = this.#stop = 0;
  }

  get #initialBytes(): number {
    return Math.min(READ_BYTES, Math.max(BUFFER_BYTES_MIN, this.#sizeBytes));
  }

  /** Whether the buffer begins with the first bytes of the file. */
  get #holdsFirstBytes(): boolean {
    return this.#position === this.#start;
  }

  #makeRoom(count: number): void {
    if (this.#holdsFirstBytes) this.#firstBytes = this.#buffer.slice(0, SIGNATURE_BYTES_MAX);
    const kept = this.#buffer.subarray(this.#start, this.#stop);
    if (count > this.#buffer.length) {
      // Doubles, because otherwise a long line would be copied once for each of its chunks.
      const length = this.#buffer === EMPTY ? this.#initialBytes : 2 * this.#buffer.length;
      const grown = new Uint8Array(Math.max(count, length));
      grown.set(kept);
      this.#buffer = grown;
    } else if (this.#start > 0) this.#buffer.copyWithin(0, this.#start, this.#stop);
    this.#start = 0;
    this.#stop = kept.length;
  }
}
