/**
 * A file that two processes share, divided into slots: one process writes large messages, the other
 * reads them. A message in a slot costs a copy into the page cache and one out of it; a pipe would
 * cost a system call for each 64 KiB.
 *
 * Leat does not map the file into memory: a process that maps a file is killed when another one
 * truncates it, and the other process may be hostile. A process that trusts its child, such as a
 * training program in Python, may map it.
 */

/** Slots of a file: one is written while another is read. */
export const SLOTS = 2;
/** Limit of the slots of a file whose reader uses messages in place, and frees slots later. */
export const LENT_SLOTS_MAX = 1_024;
/** Bytes of a slot: a file is sparse, so only written data takes space. */
export const SLOT_BYTES_MAX = 2 ** 30 + 2 ** 20;

/** One end of a slot file. Callers wait for a call to finish before the next one. */
export interface SlotFile {
  /** Writes blocks one after another, from a slot's beginning; yields to the event loop. */
  write(slot: number, blocks: readonly Uint8Array[]): void | Promise<void>;
  /**
   * Reads from a slot's beginning until `into` is full.
   * @throws `data_loss` if the file is shorter.
   */
  read(slot: number, into: Uint8Array): void | Promise<void>;
  close(): void;
}
