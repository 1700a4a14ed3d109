/** Reads files that are one element each. */
import { LeatError } from "../../core/error.ts";
import { END } from "../iterator.ts";
import { type ByteReader, READ_BYTES } from "./byte_reader.ts";
import type { FormatReader } from "./format_reader.ts";

/** Largest file that is read whole. */
const WHOLE_FILE_BYTES_MAX = 1024 * 1024 * 1024;

export interface WholeFilePosition {
  readonly ended: boolean;
}

/** Reads a whole file and makes one element of it. An error loses the file and names it. */
export class WholeFileReader implements FormatReader {
  readonly #bytes: ByteReader;
  readonly #convert: (contents: Uint8Array, path: string) => unknown;
  #ended: boolean;

  /** @param convert makes the element, synchronously or not. */
  constructor(
    bytes: ByteReader,
    convert: (contents: Uint8Array, path: string) => unknown,
    position?: WholeFilePosition,
  ) {
    this.#bytes = bytes;
    this.#convert = convert;
    this.#ended = position?.ended ?? false;
  }

  get disposed(): boolean {
    return this.#bytes.closed;
  }

  step(): unknown {
    if (this.#ended || this.disposed) return END;
    this.#ended = true;
    return this.#read();
  }

  save(): WholeFilePosition {
    return { ended: this.#ended };
  }

  close(): void {
    this.#bytes.close();
  }

  async #read(): Promise<unknown> {
    const contents = await this.#contents();
    const { path } = this.#bytes;
    if (this.disposed) return END;
    try {
      return await this.#convert(contents, path);
    } catch (cause) {
      const { code, message, details } = LeatError.from(cause);
      throw new LeatError(code, `${path}: ${message}`, { cause, details: { ...details, path } });
    }
  }

  /** Reads an uncompressed file in one read, another one to its end. */
  async #contents(): Promise<Uint8Array> {
    const { remaining } = this.#bytes;
    if (remaining < Infinity) {
      this.#requireBytes(remaining);
      const contents = new Uint8Array(remaining);
      return contents.subarray(0, await this.#bytes.takeInto(contents));
    }
    let count = 0;
    for (let wanted = READ_BYTES; count < wanted; wanted *= 2) {
      count = await this.#bytes.fill(wanted);
      this.#requireBytes(count);
      if (count < wanted) break;
    }
    return this.#bytes.take(count);
  }

  #requireBytes(count: number): void {
    if (count <= WHOLE_FILE_BYTES_MAX) return;
    const { path, stream } = this.#bytes;
    throw new LeatError(
      "resource_exhausted",
      `${path} has ${count} bytes${stream} and more, beyond ${WHOLE_FILE_BYTES_MAX} (WHOLE_FILE_BYTES_MAX).`,
      { details: { path } },
    );
  }
}
