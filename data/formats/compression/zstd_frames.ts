/** Reads the headers of zstd frames (RFC 8878), which tell how much memory decompression needs. */
import { LeatError } from "../../../core/error.ts";

/** Limit of a frame's window, which is allocated at once. The program `zstd` has the same default. */
export const ZSTD_WINDOW_BYTES_MAX = 128 * 1024 * 1024;

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

  /**
   * @throws {LeatError} `resource_exhausted` for a window larger than {@linkcode
   * ZSTD_WINDOW_BYTES_MAX}.
   */
  push(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, bytes.length - at);
        this.#skip -= skipped;
        at += skipped;
        continue;
      }
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
        checkWindow(this.#descriptor, read);
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

  #takeBlock(header: number): void {
    const isLast = (header & 1) === 1;
    const size = header >> 3;
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

function checkWindow(descriptor: number, header: readonly number[]): void {
  const { window, dictionary } = fieldsOf(descriptor);
  const size = toNumber(header.slice(window + dictionary));
  const windowBytes = window === 0 ? size : windowOf(header[0]!);
  if (windowBytes <= ZSTD_WINDOW_BYTES_MAX) return;
  throw new LeatError(
    "resource_exhausted",
    `zstd asks for a window of ${windowBytes} bytes, more than ${ZSTD_WINDOW_BYTES_MAX} (ZSTD_WINDOW_BYTES_MAX); ` +
      `compress it with --long=27 or less`,
  );
}

function windowOf(descriptor: number): number {
  const base = 2 ** (10 + (descriptor >> 3));
  return base + base / 8 * (descriptor & 7);
}

/** Decodes a little-endian integer. */
function toNumber(bytes: readonly number[]): number {
  return bytes.reduceRight((number, byte) => number * 256 + byte, 0);
}
