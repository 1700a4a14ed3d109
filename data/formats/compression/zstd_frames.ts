/**
 * Reads the headers of zstd frames (RFC 8878): where their blocks end, and how much memory
 * decompression needs. Decompresses whole frames.
 */
import { zstdDecompressed } from "../../../core/builtins.ts";
import { LeatError } from "../../../core/error.ts";

/** Limit of a frame's window. The program `zstd` has the same default. */
export const ZSTD_WINDOW_BYTES_MAX = 128 * 1024 * 1024;

/**
 * Limit of the windows of the frames in one push together, because the library allocates the window of
 * each frame, however short the frame is.
 */
export const ZSTD_WINDOWS_BYTES_MAX = 8 * ZSTD_WINDOW_BYTES_MAX;

/** The format's limit of a block. The library does not check it, so a few bytes could become 2 MiB. */
export const BLOCK_BYTES_MAX = 128 * 1024;

/** Every frame begins with it. */
export const FRAME_MAGIC_BYTES = new Uint8Array([0x28, 0xb5, 0x2f, 0xfd]);

const FRAME_MAGIC = toNumber(FRAME_MAGIC_BYTES);
const SKIPPABLE_MAGIC = 0x184d2a50;
const MAGIC_BYTES = FRAME_MAGIC_BYTES.length;
const BLOCK_HEADER_BYTES = 3;
const CHECKSUM_BYTES = 4;
const RUN_LENGTH_BLOCK = 1;

/** What is read next. All other bytes of a frame are skipped. */
type Part = "magic" | "skippable" | "descriptor" | "header" | "block" | "checksum";

/** Pushed bytes of a frame, within its header, one of its blocks or its checksum. */
export interface Piece {
  readonly start: number;
  readonly stop: number;
  /** Whether the frame ends at `stop`. */
  readonly endsFrame: boolean;
}

/** Cuts the frames of a file into pieces, and checks their headers. */
export class ZstdFrames {
  #part: Part = "magic";
  /** Whether the current part belongs to a frame whose magic was read. */
  #isInFrame = false;
  /** The bytes of the current part so far. */
  #read: number[] = [];
  #wanted = MAGIC_BYTES;
  #skip = 0;
  #descriptor = 0;
  #windowBytes = 0;
  /** Bytes of the windows of the frames in this push. */
  #windowsBytes = 0;

  /**
   * Yields the pieces of the file's next bytes. A frame's magic and skippable frames are in none.
   *
   * @throws {LeatError} `unimplemented` for a frame that needs a dictionary; `resource_exhausted` for a
   * window larger than {@linkcode ZSTD_WINDOW_BYTES_MAX}, or windows that are together larger than
   * {@linkcode ZSTD_WINDOWS_BYTES_MAX}.
   * @throws {Error} for a block that is larger than the format allows, or bytes that are no frame.
   */
  *push(bytes: Uint8Array): Generator<Piece> {
    this.#windowsBytes = 0;
    for (let start = 0, at = 0; at < bytes.length;) {
      const wasInFrame = this.#isInFrame;
      at = this.#advance(bytes, at);
      const isCut = this.#isAtEnd && this.#part !== "header" && this.#part !== "skippable";
      if (!isCut && at < bytes.length) continue;
      if (wasInFrame) yield { start, stop: at, endsFrame: !this.#isInFrame };
      start = at;
    }
  }

  /** @throws {Error} if the file may not end here. */
  end(): void {
    if (this.#part !== "magic" || !this.#isAtEnd) throw new Error("it ends within a frame");
  }

  /** Whether the current part has no bytes yet, and nothing is left to skip. */
  get #isAtEnd(): boolean {
    return this.#read.length === 0 && this.#skip === 0;
  }

  #advance(bytes: Uint8Array, at: number): number {
    let next = at + 1;
    if (this.#skip > 0) {
      next = Math.min(at + this.#skip, bytes.length);
      this.#skip -= next - at;
    } else {
      this.#read.push(bytes[at]!);
      if (this.#read.length === this.#wanted) this.#take(this.#read.splice(0));
    }
    // After the last block, or its checksum.
    if (this.#part === "magic" && this.#isAtEnd) this.#isInFrame = false;
    return next;
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
        this.#requireNoDictionary(read);
        this.#takeWindow(windowBytesOf(this.#descriptor, read));
        return this.#expect("block", BLOCK_HEADER_BYTES);
      case "block":
        return this.#takeBlock(toNumber(read));
      case "checksum":
        return this.#expect("magic", MAGIC_BYTES);
    }
  }

  #takeMagic(magic: number): void {
    this.#isInFrame = magic === FRAME_MAGIC;
    if (this.#isInFrame) return this.#expect("descriptor", 1);
    if (magic - magic % 16 !== SKIPPABLE_MAGIC) throw new Error("no frame begins here");
    this.#expect("skippable", 4);
  }

  #takeDescriptor(descriptor: number): void {
    this.#descriptor = descriptor;
    const { window, dictionary, size } = fieldsOf(descriptor);
    this.#expect("header", window + dictionary + size);
  }

  #requireNoDictionary(header: readonly number[]): void {
    const { window, dictionary } = fieldsOf(this.#descriptor);
    const id = toNumber(header.slice(window, window + dictionary));
    if (id === 0) return;
    throw new LeatError(
      "unimplemented",
      `zstd asks for the dictionary with number ${id}; compress it without a dictionary`,
    );
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
    if ((this.#descriptor & 4) !== 0) this.#expect("checksum", CHECKSUM_BYTES);
    else this.#expect("magic", MAGIC_BYTES);
  }

  #expect(part: Part, bytes: number): void {
    this.#part = part;
    this.#wanted = bytes;
  }
}

/**
 * Decompresses a whole frame at once, which for a short one is much faster than a stream; `undefined`
 * if it has more than `bytesMax` bytes. Damage throws the library's error.
 */
export function inflateFrame(frame: Uint8Array, bytesMax: number): Uint8Array | undefined {
  // A large buffer would take longer than the decompression of a short frame.
  const chunkSize = Math.min(1024 + 8 * frame.length, BLOCK_BYTES_MAX);
  // The limit has to be above 0.
  const options = { chunkSize, maxOutputLength: bytesMax + 1 };
  try {
    const content = zstdDecompressed(frame, options);
    return content.length > bytesMax ? undefined : content;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") return undefined;
    throw error;
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
function toNumber(bytes: readonly number[] | Uint8Array): number {
  return [...bytes].reduceRight((number, byte) => number * 256 + byte, 0);
}
