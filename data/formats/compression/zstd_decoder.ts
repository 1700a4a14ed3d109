/** Decompresses zstd files, up to the block that is damaged. */
import { LeatError, type LeatErrorCode } from "../../../core/error.ts";
import type { OpenFile } from "../../host.ts";
import type { Decoder } from "../byte_source.ts";
import { plainBytes, READ_BYTES } from "../plain_bytes.ts";
import { Inflation } from "./inflation.ts";
import {
  BLOCK_BYTES_MAX,
  FRAME_MAGIC_BYTES,
  inflateFrame,
  type Piece,
  ZstdFrames,
} from "./zstd_frames.ts";

/** The codes of errors about files that are not damaged. */
const UNREAD: readonly LeatErrorCode[] = ["resource_exhausted", "unimplemented"];

/** Bytes that are checked at a time, see {@linkcode ZSTD_WINDOWS_BYTES_MAX}. */
const PUSH_BYTES = 8 * 1024;

/** Decompresses a file of one or more frames. Damage loses its block, at most 128 KiB. */
export function zstdDecoder(path: string, file: OpenFile): Decoder {
  const decoder = new FrameDecoder(path, file);
  const chunks = decoder.chunks();
  return { next: () => chunks.next(), destroy: () => decoder.destroy() };
}

class FrameDecoder {
  readonly #path: string;
  readonly #file: OpenFile;
  readonly #frames = new ZstdFrames();
  #inflation: Inflation | undefined;
  #destroyed = false;

  constructor(path: string, file: OpenFile) {
    this.#path = path;
    this.#file = file;
  }

  async *chunks(): AsyncGenerator<Uint8Array> {
    const source = plainBytes(this.#path, this.#file, 0);
    const buffer = new Uint8Array(READ_BYTES);
    for (let offset = 0;;) {
      const count = await source.read(buffer);
      for (let at = 0; at < count; at += PUSH_BYTES) {
        const bytes = buffer.subarray(at, Math.min(at + PUSH_BYTES, count));
        yield* this.#undone(bytes, offset);
        offset += bytes.length;
      }
      if (count > 0) continue;
      this.#expect(offset, () => this.#frames.end());
      return;
    }
  }

  destroy(): void {
    this.#destroyed = true;
    this.#inflation?.destroy();
  }

  /** Decompresses the next bytes of the file. They are at `offset`. */
  async *#undone(bytes: Uint8Array, offset: number): AsyncGenerator<Uint8Array> {
    const groups = byFrame(this.#frames.push(bytes));
    for (let at = offset;;) {
      const { done, value: group } = this.#expect(at, () => groups.next());
      if (done) return;
      at = offset + group.at(-1)!.stop;
      const content = this.#inflation === undefined ? shortContent(bytes, group) : undefined;
      if (content !== undefined) yield content;
      else yield* this.#inflated(bytes, group, offset);
    }
  }

  /** Decompresses pieces of one frame, one after the other. */
  async *#inflated(
    bytes: Uint8Array,
    pieces: readonly Piece[],
    offset: number,
  ): AsyncGenerator<Uint8Array> {
    for (const piece of pieces) {
      // A piece holds no more than one block. Deno's zlib throws an error beyond the reach of its
      // caller if it finds damage after its output buffer was full, so in a second block of a step.
      const inflation = this.#inflation ?? await this.#begin();
      if (this.#destroyed) throw this.#cancelled();
      yield* await inflation.take(bytes.subarray(piece.start, piece.stop));
      if (inflation.error !== undefined) throw this.#damaged(offset + piece.start, inflation.error);
      if (!piece.endsFrame) continue;
      inflation.destroy();
      this.#inflation = undefined;
    }
  }

  async #begin(): Promise<Inflation> {
    if (this.#destroyed) throw this.#cancelled();
    this.#inflation = new Inflation("zstd");
    await this.#inflation.take(FRAME_MAGIC_BYTES);
    return this.#inflation;
  }

  #cancelled(): LeatError {
    return new LeatError("cancelled", `Reading ${this.#path} was cancelled.`);
  }

  #expect<T>(offset: number, step: () => T): T {
    try {
      return step();
    } catch (error) {
      throw this.#damaged(offset, LeatError.from(error));
    }
  }

  #damaged(offset: number, cause: Error): LeatError {
    this.#inflation?.destroy();
    const details = { path: this.#path, offset };
    if (cause instanceof LeatError && UNREAD.includes(cause.code)) {
      const message = `Cannot read ${this.#path}: ${cause.message}.`;
      return new LeatError(cause.code, message, { cause, details });
    }
    return new LeatError(
      "data_loss",
      `Damaged file ${this.#path}: its zstd compression cannot be undone from byte ${offset} on: ` +
        `${cause.message}.`,
      { cause, details },
    );
  }
}

/** Groups the pieces of each frame. Before an error it yields the pieces of the unfinished frame. */
function* byFrame(pieces: Iterable<Piece>): Generator<Piece[]> {
  let group: Piece[] = [];
  try {
    for (const piece of pieces) {
      group.push(piece);
      if (!piece.endsFrame) continue;
      yield group;
      group = [];
    }
  } finally {
    if (group.length > 0) yield group;
  }
}

/**
 * Decompresses a frame of one block at once if all of it is in `bytes`. Returns `undefined` for another
 * frame, and for a damaged one, whose content up to the damage comes from a stream.
 *
 * @param pieces Those of the frame, from its header on: the header, the block, and perhaps a checksum.
 */
function shortContent(bytes: Uint8Array, pieces: readonly Piece[]): Uint8Array | undefined {
  const start = pieces[0]!.start - FRAME_MAGIC_BYTES.length;
  const { stop, endsFrame } = pieces.at(-1)!;
  if (start < 0 || !endsFrame || pieces.length > 3) return undefined;
  try {
    return inflateFrame(bytes.subarray(start, stop), BLOCK_BYTES_MAX);
  } catch {
    return undefined;
  }
}
