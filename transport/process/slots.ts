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

/** Slots of a file: one is written while another is read. */
export const SLOTS = 2;
/** Where slots begin, in bytes: a file is sparse, so only what was written takes space. */
export const SLOT_BYTES_MAX = 2 ** 30 + 2 ** 20;

/** One end of a slot file, as the machine opens it. A call is over before the next one is made. */
export interface SlotFile {
  /** Writes all bytes at a slot's beginning. A call that takes long gives way to the event loop. */
  write(slot: number, bytes: Uint8Array): void | Promise<void>;
  /**
   * Reads from a slot's beginning until the buffer is full.
   *
   * @throws {LeatError} `data_loss` where the file is shorter, because its writer has cut it.
   */
  read(slot: number, into: Uint8Array): void | Promise<void>;
  close(): void;
}
