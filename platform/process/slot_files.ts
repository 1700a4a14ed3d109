/** Slot files as Deno opens them. */
import { LeatError } from "../../core/error.ts";
import { SLOT_BYTES_MAX, type SlotFile } from "../../transport/process/slots.ts";
import { isDiskFull } from "../system_codes.ts";

/** See {@linkcode DenoSlotFile}. */
const CHUNK_BYTES = 4 * 2 ** 20;
/** Most bytes of one call on another thread, which a process that ends has to wait for. */
const ASIDE_BYTES_MAX = 64 * 2 ** 20;

export function writableSlots(path: string): SlotFile {
  return new DenoSlotFile(Deno.openSync(path, { write: true }));
}

export function readableSlots(path: string): SlotFile {
  return new DenoSlotFile(Deno.openSync(path, { read: true }));
}

export class DenoSlotFile implements SlotFile {
  readonly #file: Deno.FsFile;
  readonly #chunkBytes: number;

  /** @param chunkBytes are read or written without yielding to the event loop. */
  constructor(file: Deno.FsFile, chunkBytes = CHUNK_BYTES) {
    this.#file = file;
    this.#chunkBytes = chunkBytes;
  }

  write(slot: number, blocks: readonly Uint8Array[]): void | Promise<void> {
    this.#file.seekSync(slot * SLOT_BYTES_MAX, Deno.SeekMode.Start);
    if (blocks.some(({ length }) => length > this.#chunkBytes)) return this.#writeLong(blocks);
    try {
      for (const bytes of blocks) {
        for (let at = 0; at < bytes.length;) at += this.#file.writeSync(bytes.subarray(at));
      }
    } catch (error) {
      throw whyUnwritten(error);
    }
  }

  read(slot: number, into: Uint8Array): void | Promise<void> {
    this.#file.seekSync(slot * SLOT_BYTES_MAX, Deno.SeekMode.Start);
    if (into.length > this.#chunkBytes) return this.#readLong(into);
    for (let at = 0; at < into.length;) at += countOf(this.#file.readSync(into.subarray(at)));
  }

  close(): void {
    this.#file.close();
  }

  async #writeLong(blocks: readonly Uint8Array[]): Promise<void> {
    try {
      for (const bytes of blocks) {
        for (let at = 0; at < bytes.length;) {
          at += await this.#file.write(bytes.subarray(at, at + ASIDE_BYTES_MAX));
        }
      }
    } catch (error) {
      throw whyUnwritten(error);
    }
  }

  async #readLong(into: Uint8Array): Promise<void> {
    for (let at = 0; at < into.length;) {
      at += countOf(await this.#file.read(into.subarray(at, at + this.#chunkBytes)));
    }
  }
}

function whyUnwritten(cause: unknown): unknown {
  if (!isDiskFull(cause)) return cause;
  return new LeatError(
    "resource_exhausted",
    "The disk under the slots that two processes share is full: free space there, or use another folder",
    { cause },
  );
}

function countOf(count: number | null): number {
  if (count !== null) return count;
  throw new LeatError("data_loss", "A slot is shorter than the message that was announced in it");
}
