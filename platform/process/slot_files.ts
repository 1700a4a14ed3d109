/** Opens, reads and writes slot files with Deno. */
import { LeatError } from "../../core/error.ts";
import { SLOT_BYTES_MAX, type SlotFile } from "../../transport/process/slots.ts";
import { isDiskFull } from "../system_codes.ts";

/** Longer reads and writes yield to the event loop. */
const CHUNK_BYTES = 4 * 2 ** 20;
/** Limit of the bytes of one asynchronous write, because the process cannot end before it completes. */
const ASYNC_WRITE_BYTES_MAX = 64 * 2 ** 20;

export function writableSlots(path: string): SlotFile {
  return slotFile(Deno.openSync(path, { write: true }));
}

export function readableSlots(path: string): SlotFile {
  return slotFile(Deno.openSync(path, { read: true }));
}

/** @param chunkBytes Limit of the bytes that are read or written without yielding to the event loop. */
export function slotFile(file: Deno.FsFile, chunkBytes = CHUNK_BYTES): SlotFile {
  const writeLong = async (blocks: readonly Uint8Array[]) => {
    try {
      for (const bytes of blocks) {
        for (let at = 0; at < bytes.length;) {
          at += await file.write(bytes.subarray(at, at + ASYNC_WRITE_BYTES_MAX));
        }
      }
    } catch (error) {
      throw writeError(error);
    }
  };
  const readLong = async (into: Uint8Array) => {
    for (let at = 0; at < into.length;) {
      at += requireCount(await file.read(into.subarray(at, at + chunkBytes)));
    }
  };
  return {
    write(slot, blocks): void | Promise<void> {
      file.seekSync(slot * SLOT_BYTES_MAX, Deno.SeekMode.Start);
      if (blocks.some(({ length }) => length > chunkBytes)) return writeLong(blocks);
      try {
        for (const bytes of blocks) {
          for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
        }
      } catch (error) {
        throw writeError(error);
      }
    },
    read(slot, into): void | Promise<void> {
      file.seekSync(slot * SLOT_BYTES_MAX, Deno.SeekMode.Start);
      if (into.length > chunkBytes) return readLong(into);
      for (let at = 0; at < into.length;) at += requireCount(file.readSync(into.subarray(at)));
    },
    close: () => file.close(),
  };
}

function writeError(cause: unknown): unknown {
  if (!isDiskFull(cause)) return cause;
  return new LeatError(
    "resource_exhausted",
    "The disk of the slot files that two processes share is full: free space there, or use another folder",
    { cause },
  );
}

function requireCount(count: number | null): number {
  if (count !== null) return count;
  throw new LeatError("data_loss", "A slot is shorter than the message that was announced in it");
}
