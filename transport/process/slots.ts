/**
 * A file that two processes share, divided into slots: one process writes large messages, the other
 * reads them. A message in a slot costs a copy into the page cache and one out of it, where a pipe
 * costs a system call for each 64 KiB.
 *
 * The file is not mapped into memory. A process that maps a file is killed when another one
 * truncates it, and the process at the other end may be hostile.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";

/** Slots of a file: one is written while another is read. */
export const SLOTS = 2;
/** Where slots begin, in bytes: a file is sparse, so only what was written takes space. */
export const SLOT_BYTES_MAX = 2 ** 30 + 2 ** 20;

/** Bytes that are read or written without giving way to the event loop. */
const CHUNK_BYTES = 4 * 2 ** 20;

/** Opens the end of a slot file that is written. */
export function writableSlots(path: string): SlotFile {
  return new SlotFile(Deno.openSync(path, { write: true }));
}

/** Opens the end of a slot file that is read. */
export function readableSlots(path: string): SlotFile {
  return new SlotFile(Deno.openSync(path, { read: true }));
}

/** One end of a slot file. */
export class SlotFile implements Disposable {
  readonly #file: Deno.FsFile;

  constructor(file: Deno.FsFile) {
    this.#file = file;
  }

  /** Writes a message of at most {@linkcode SLOT_BYTES_MAX} bytes. */
  write(slot: number, bytes: Uint8Array): void | Promise<void> {
    this.#file.seekSync(slot * SLOT_BYTES_MAX, Deno.SeekMode.Start);
    if (bytes.length > CHUNK_BYTES) return this.#writeLong(bytes);
    for (let at = 0; at < bytes.length;) at += this.#file.writeSync(bytes.subarray(at));
  }

  /**
   * Reads a message into a buffer of its length.
   *
   * @throws {LeatError} `data_loss` where the file is shorter, because its writer has cut it.
   */
  read(slot: number, into: Uint8Array): void | Promise<void> {
    this.#file.seekSync(slot * SLOT_BYTES_MAX, Deno.SeekMode.Start);
    if (into.length > CHUNK_BYTES) return this.#readLong(into);
    for (let at = 0; at < into.length;) at += countOf(this.#file.readSync(into.subarray(at)));
  }

  [Symbol.dispose](): void {
    this.#file.close();
  }

  async #writeLong(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      at += await this.#file.write(bytes.subarray(at, at + CHUNK_BYTES));
    }
  }

  async #readLong(into: Uint8Array): Promise<void> {
    for (let at = 0; at < into.length;) {
      at += countOf(await this.#file.read(into.subarray(at, at + CHUNK_BYTES)));
    }
  }
}

function countOf(count: number | null): number {
  if (count !== null) return count;
  throw new LeatError("data_loss", "A slot is shorter than the message that was announced in it");
}
