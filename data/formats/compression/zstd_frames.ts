/** Reads the headers of zstd frames (RFC 8878), which tell how much memory decompression needs. */
import { LeatError } from "../../../core/error.ts";

/** Limit of a frame's window, which is allocated at once. The program `zstd` has the same default. */
export const ZSTD_WINDOW_BYTES_MAX = 128 * 1024 * 1024;

/**
 * Limit of the windows of the frames in one push together, because the library allocates and fills the
 * window of each frame, however short the frame is.
 */
export const ZSTD_WINDOWS_BYTES_MAX = 8 * ZSTD_WINDOW_BYTES_MAX;

/** The format's limit of a block. The library does not check it, so a few bytes could become 2 MiB. */
const BLOCK_BYTES_MAX = 128 * 1024;

const FRAME_MAGIC = 0xfd2fb528;
const SKIPPABLE_MAGIC = 0x184d2a50;
const MAGIC_BYTES = 4;
const BLOCK_HEADER_BYTES = 3;
const CHECKSUM_BYTES = 4;
const RUN_LENGTH_BLOCK = 1;

/** What is read next. All other bytes of a frame are skipped. */
type Part = "magic" | "skippable" | "descriptor" | "header" | "block";

/**
 * Checks the frames of a file, whose bytes are pushed in order. Ignores everything from the first
 * damage on, because the library reports damage.
 */
export class ZstdFrames {
  #part: Part = "magic";
  /** The bytes of the current part so far. */
  #read: number[] = [];
  #wanted = MAGIC_BYTES;
  #skip = 0;
  #descriptor = 0;
  #windowBytes = 0;
  /** Bytes of the windows of the frames in this push. */
  #windowsBytes = 0;
  #soundBytes = 0;

  /** How many bytes of the last push come before the header that it refused. */
  get soundBytes(): number {
    return this.#soundBytes;
  }

  /**
   * @throws {LeatError} `resource_exhausted` for a window larger than {@linkcode
   * ZSTD_WINDOW_BYTES_MAX}, or windows that are together larger than {@linkcode
   * ZSTD_WINDOWS_BYTES_MAX}.
   * @throws {Error} for a block that is larger than the format allows.
   */
  push(bytes: Uint8Array): void {
    this.#windowsBytes = 0;
    this.#soundBytes = 0;
    for (let at = 0; at < bytes.length;) {
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, bytes.length - at);
        this.#skip -= skipped;
        at += skipped;
        continue;
      }
      if (this.#read.length === 0) this.#soundBytes = at;
      this.#read.push(bytes[at++]!);
      if (this.#read.length < this.#wanted) continue;
      const read = this.#read;
      this.#read = [];
      this.#take(read);
    }
  }

  #take(read: readonly number[]): void {
    switch (this.#part) {
      case "magic":
        return this.#takeMagic(toNumber(read));
      case "skippable":
        this.#skip = toNumber(read);
        return this.#expect("magic", MAGIC_BYTES);
      case "descriptor":
        return this.#takeDescriptor(read[0]!);
      case "header":
        this.#takeWindow(windowBytesOf(this.#descriptor, read));
        return this.#expect("block", BLOCK_HEADER_BYTES);
      case "block":
        return this.#takeBlock(toNumber(read));
    }
  }

  #takeMagic(magic: number): void {
    if (magic === FRAME_MAGIC) this.#expect("descriptor", 1);
    else if (magic - magic % 16 === SKIPPABLE_MAGIC) this.#expect("skippable", 4);
    else this.#skip = Infinity;
  }

  #takeDescriptor(descriptor: number): void {
    this.#descriptor = descriptor;
    const { window, dictionary, size } = fieldsOf(descriptor);
    this.#expect("header", window + dictionary + size);
  }

  #takeWindow(windowBytes: number): void {
    if (windowBytes > ZSTD_WINDOW_BYTES_MAX) {
      throw new LeatError(
        "resource_exhausted",
        `zstd asks for a window of ${windowBytes} bytes, more than ${ZSTD_WINDOW_BYTES_MAX} (ZSTD_WINDOW_BYTES_MAX); ` +
          `compress it with --long=27 or less`,
      );
    }
    this.#windowBytes = windowBytes;
    this.#windowsBytes += windowBytes;
    if (this.#windowsBytes <= ZSTD_WINDOWS_BYTES_MAX) return;
    throw new LeatError(
      "resource_exhausted",
      `short zstd frames ask for windows of together ${this.#windowsBytes} bytes, more than ` +
        `${ZSTD_WINDOWS_BYTES_MAX} (ZSTD_WINDOWS_BYTES_MAX); compress it as one frame`,
    );
  }

  #takeBlock(header: number): void {
    const isLast = (header & 1) === 1;
    const size = header >> 3;
    const sizeMax = Math.min(this.#windowBytes, BLOCK_BYTES_MAX);
    if (size > sizeMax) throw new Error(`a block has ${size} bytes, more than ${sizeMax}`);
    this.#skip = (header >> 1 & 3) === RUN_LENGTH_BLOCK ? 1 : size;
    if (!isLast) return this.#expect("block", BLOCK_HEADER_BYTES);
    if ((this.#descriptor & 4) !== 0) this.#skip += CHECKSUM_BYTES;
    this.#expect("magic", MAGIC_BYTES);
  }

  #expect(part: Part, bytes: number): void {
    this.#part = part;
    this.#wanted = bytes;
  }
}

/** Returns the sizes of the fields of a frame's header, in bytes. */
function fieldsOf(descriptor: number): { window: number; dictionary: number; size: number } {
  const isSingle = (descriptor >> 5 & 1) === 1;
  const sizeFlag = descriptor >> 6;
  return {
    window: isSingle ? 0 : 1,
    dictionary: [0, 1, 2, 4][descriptor & 3]!,
    size: sizeFlag === 0 ? (isSingle ? 1 : 0) : 1 << sizeFlag,
  };
}

function windowBytesOf(descriptor: number, header: readonly number[]): number {
  const { window, dictionary, size } = fieldsOf(descriptor);
  if (window > 0) return windowOf(header[0]!);
  // A size of two bytes is stored less 256, because smaller sizes take one byte.
  return toNumber(header.slice(dictionary)) + (size === 2 ? 256 : 0);
}

function windowOf(descriptor: number): number {
  const base = 2 ** (10 + (descriptor >> 3));
  return base + base / 8 * (descriptor & 7);
}

/** Decodes a little-endian integer. */
function toNumber(bytes: readonly number[]): number {
  return bytes.reduceRight((number, byte) => number * 256 + byte, 0);
}
