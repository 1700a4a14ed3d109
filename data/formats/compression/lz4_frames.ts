/** Reads frames of LZ4: a header, blocks, and checksums (`lz4_Frame_format.md` of LZ4's project). */
import { Lz4Blocks } from "./lz4_blocks.ts";
import { xxHash32 } from "./xx_hash.ts";

const MAGIC = 0x184d2204;
const MAGIC_BYTES = 4;
const VERSION = 1;
/** The bit of a block's size that says that the block is not compressed. */
const STORED = 2 ** 31;
/** A byte of a block makes at most this many bytes of content. */
const RATIO_MAX = 255;

/** A block of a frame, by the offsets of its bytes. */
interface Block {
  readonly start: number;
  readonly stop: number;
  readonly isStored: boolean;
}

export interface Lz4Frame {
  readonly blocks: readonly Block[];
  /** Whether a block may repeat the content of the blocks before it. */
  readonly isLinked: boolean;
  /** The most bytes that the content can have. */
  readonly sizeMax: number;
  /** Bytes of the content, if the header says so. */
  readonly sizeBytes: number | undefined;
  readonly checksum: number | undefined;
}

/** Walks a frame, and checks the checksums of its header and blocks. @throws {Error} if it is damaged. */
export function readLz4Frame(data: Uint8Array): Lz4Frame {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let at = 0;
  const take = (count: number) => {
    if (count > data.length - at) throw new Error("it ends within a frame of LZ4");
    return (at += count) - count;
  };
  const uint32 = () => view.getUint32(take(4), true);
  if (uint32() !== MAGIC) throw new Error("it does not begin with a frame of LZ4");
  const [flags, limits] = [data[take(1)]!, data[take(1)]!];
  const has = (bit: number) => (flags >> bit & 1) === 1;
  const blockBytesMax = 2 ** (8 + 2 * (limits >> 4));
  if (flags >> 6 !== VERSION || has(1) || has(0) || blockBytesMax < 2 ** 16 || limits & 0x8f) {
    throw new Error("the header of a frame of LZ4 has unknown settings");
  }
  const sizeBytes = has(3) ? Number(view.getBigUint64(take(8), true)) : undefined;
  const headerHash = xxHash32(data.subarray(MAGIC_BYTES, at)) >>> 8 & 0xff;
  if (data[take(1)] !== headerHash) throw new Error("the header of a frame of LZ4 is damaged");
  const blocks: Block[] = [];
  let sizeMax = 0;
  for (let size = uint32(); size !== 0; size = uint32()) {
    const isStored = size >= STORED;
    const length = isStored ? size - STORED : size;
    const start = take(length);
    blocks.push({ start, stop: at, isStored });
    sizeMax += isStored ? length : Math.min(blockBytesMax, RATIO_MAX * length);
    if (has(4)) checkHash(data.subarray(start, start + length), uint32(), "a block");
  }
  const checksum = has(2) ? uint32() : undefined;
  return { blocks, isLinked: !has(5), sizeMax, sizeBytes, checksum };
}

/** Decompresses a frame. @throws {Error} if it is damaged. */
export function lz4Content(data: Uint8Array, frame: Lz4Frame): Uint8Array {
  const { sizeMax, sizeBytes = sizeMax, isLinked, checksum } = frame;
  if (sizeBytes > sizeMax) throw new Error(`its header claims ${sizeBytes} decompressed bytes`);
  const decoder = new Lz4Blocks(data, sizeBytes);
  for (const { start, stop, isStored } of frame.blocks) {
    decoder.at = start;
    if (isStored) decoder.stored(stop);
    else decoder.block(stop, isLinked ? 0 : undefined);
  }
  const content = frame.sizeBytes === undefined ? decoder.content : decoder.end();
  if (checksum !== undefined) checkHash(content, checksum, "the content");
  return content;
}

function checkHash(bytes: Uint8Array, checksum: number, what: string): void {
  if (xxHash32(bytes) === checksum) return;
  throw new Error(`${what} of a frame of LZ4 does not have its checksum`);
}
