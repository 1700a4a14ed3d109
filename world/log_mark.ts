/**
 * How far a log was written, in a file of its own beside it.
 *
 * SQLite drops silently what follows damage in a write-ahead file, because it cannot tell a commit
 * that was lost from one that never ended. The mark can: it is written after each commit, and not
 * waited for, so that it costs some microseconds. A power cut may leave it behind the log, never
 * ahead of it.
 *
 * @module
 */
import { closeSync, constants, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { crc32 } from "node:zlib";
import { isDiskFull } from "./system_codes.ts";

/** The number, big-endian, and its checksum. */
const NUMBER_BYTES = 8;
const MARK_BYTES = NUMBER_BYTES + 4;

/** The mark of an open log. */
export class LogMark {
  readonly #path: string;
  readonly #descriptor: number;
  readonly #bytes = new Uint8Array(MARK_BYTES);

  /** Opens the mark for writing; what it says stays until something is written. */
  constructor(path: string) {
    this.#path = path;
    this.#descriptor = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o644);
  }

  /** The newest record that was written; undefined where no mark is left, or a torn one. */
  static read(path: string): number | undefined {
    let bytes: Uint8Array;
    try {
      bytes = readFileSync(path);
    } catch (error) {
      if ((error as { code?: unknown }).code === "ENOENT") return undefined;
      throw error;
    }
    if (bytes.byteLength !== MARK_BYTES) return undefined;
    const view = new DataView(bytes.buffer, bytes.byteOffset, MARK_BYTES);
    const isWhole = crc32(bytes.subarray(0, NUMBER_BYTES)) === view.getUint32(NUMBER_BYTES);
    return isWhole ? Number(view.getBigUint64(0)) : undefined;
  }

  /** All records up to this one are durable. On a full disk the mark stays behind, where a new one has no place. */
  write(number: number): void {
    const view = new DataView(this.#bytes.buffer);
    view.setBigUint64(0, BigInt(number));
    view.setUint32(NUMBER_BYTES, crc32(this.#bytes.subarray(0, NUMBER_BYTES)));
    try {
      writeSync(this.#descriptor, this.#bytes, 0, MARK_BYTES, 0);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
    }
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  /** Closes it for good: a log in one file says by itself whether it is whole. */
  remove(): void {
    this.close();
    rmSync(this.#path, { force: true });
  }
}
