/**
 * The mark records how far a log was written, in a file next to the log. If a write-ahead file is
 * damaged, SQLite silently drops the rest, because it cannot tell a lost commit from an unfinished
 * one. The mark reveals lost commits. It is written after each commit, without a sync. So after a
 * power cut the mark may be behind the log, but never ahead.
 */
import { closeSync, constants, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { crc32 } from "node:zlib";
import { isDiskFull } from "../system_codes.ts";

/** A mark is the newest record's number, big-endian, and the number's checksum. */
const NUMBER_BYTES = 8;
const MARK_BYTES = NUMBER_BYTES + 4;

/**
 * The mode of a log's files. Other users of the host must not read them: records contain pipelines,
 * with the data in them, and digests of the clients' secrets.
 */
export const PRIVATE_FILE_MODE = 0o600;

export class LogMark {
  readonly #path: string;
  readonly #descriptor: number;
  readonly #bytes = new Uint8Array(MARK_BYTES);

  /** Opens the mark for writing; its content stays until the first write. */
  constructor(path: string) {
    this.#path = path;
    this.#descriptor = openSync(path, constants.O_RDWR | constants.O_CREAT, PRIVATE_FILE_MODE);
  }

  /** The newest record that was written; undefined if the mark is missing or torn. */
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

  /** Records that everything up to record `number` is durable. On a full disk the mark stays as it was. */
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

  /** Closes and removes the mark: a closed log is one file and needs none. */
  remove(): void {
    this.close();
    rmSync(this.#path, { force: true });
  }
}
