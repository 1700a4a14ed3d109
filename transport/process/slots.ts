/**
 * A file that two processes share, divided into slots: one process writes large messages, the other
 * reads them. A message in a slot costs a copy into the page cache and one out of it; a pipe would
 * cost a system call for each 64 KiB.
 *
 * The file is not mapped into memory: a process that maps a file is killed when another one
 * truncates it, and the other process may be hostile.
 */

/** Slots of a file: one is written while another is read. */
export const SLOTS = 2;
/** Bytes of a slot: a file is sparse, so only written data takes space. */
export const SLOT_BYTES_MAX = 2 ** 30 + 2 ** 20;

/** One end of a slot file. Callers wait for a call to finish before the next one. */
export interface SlotFile {
  /** Writes all bytes at a slot's beginning. A long call yields to the event loop. */
  write(slot: number, bytes: Uint8Array): void | Promise<void>;
  /**
   * Reads from a slot's beginning until `into` is full.
   * @throws `data_loss` if the file is shorter.
   */
  read(slot: number, into: Uint8Array): void | Promise<void>;
  close(): void;
}
