/** Reads the bytes of an uncompressed file. */
import { LeatError } from "../../core/error.ts";
import type { OpenFile } from "../host.ts";
import type { ByteSource } from "./byte_source.ts";

/** Bytes per read, and so the most that is buffered too early. */
export const READ_BYTES = 256 * 1024;

/** Reads a file from an offset on, and detects when it has become shorter. */
export class PlainBytes implements ByteSource {
  readonly #path: string;
  readonly #file: OpenFile;
  #offset: number;

  constructor(path: string, file: OpenFile, offset: number) {
    this.#path = path;
    this.#file = file;
    this.#offset = offset;
  }

  read(into: Uint8Array): number | Promise<number> {
    // The size is known: asking remote storage for the end would cost a round trip.
    if (this.#offset >= this.#file.sizeBytes) return 0;
    const read = this.#file.read(into, this.#offset);
    return read instanceof Promise
      ? read.then((count) => this.#advance(count))
      : this.#advance(read);
  }

  skip(count: number): number {
    const skipped = Math.min(count, Math.max(this.#file.sizeBytes - this.#offset, 0));
    this.#offset += skipped;
    return skipped;
  }

  close(): void {
    this.#file.close();
  }

  #advance(count: number): number {
    if (count === 0) {
      throw new LeatError(
        "data_loss",
        `${this.#path} was cut short while it was read: it had ${this.#file.sizeBytes} bytes when it ` +
          `was opened, and ends at byte ${this.#offset} now.`,
        { details: { path: this.#path } },
      );
    }
    this.#offset += count;
    return count;
  }
}
