/** Reads ranges of a file, for formats that refer to their parts by offset. */
import { LeatError, type LeatErrorCode } from "../../core/error.ts";
import { shownPath } from "../../core/shown_text.ts";
import type { OpenFile } from "../host.ts";
import { ReadingFailure } from "../iterators/reading_failure.ts";
import type { SourceFile } from "./format_reader.ts";

/** A file, or a part of a file. A read returns the whole range, or fails. */
export class ByteRanges {
  /** The format's name in messages: `"Parquet"`. */
  readonly format: string;
  /** The file's name in messages: without the secrets of a URL. */
  readonly path: string;
  readonly sizeBytes: number;
  readonly #file: OpenFile;
  readonly #start: number;

  constructor(format: string, path: string, file: OpenFile, start = 0, sizeBytes = file.sizeBytes) {
    this.format = format;
    this.path = shownPath(path);
    this.sizeBytes = sizeBytes;
    this.#file = file;
    this.#start = start;
  }

  /** A whole file. */
  static of(format: string, { path, file }: SourceFile): ByteRanges {
    return new ByteRanges(format, path, file);
  }

  /** A part of this file that is a file itself, such as an entry of an archive. */
  within(path: string, start: number, sizeBytes: number): ByteRanges {
    return new ByteRanges(this.format, path, this.#file, this.#start + start, sizeBytes);
  }

  /**
   * Returns the bytes from `start` up to `stop`, in memory of their own.
   *
   * @throws {LeatError} `data_loss` if the file does not have the whole range.
   */
  async read(start: number, stop: number): Promise<Uint8Array<ArrayBuffer>> {
    if (!(start >= 0 && start <= stop && stop <= this.sizeBytes)) {
      throw this.damaged(`it has ${this.sizeBytes} bytes, and refers to bytes ${start} to ${stop}`);
    }
    const bytes = new Uint8Array(stop - start);
    await this.readInto(bytes, start);
    return bytes;
  }

  /** Fills `into` with the bytes from `start` on. Throws like `read()`. */
  async readInto(into: Uint8Array, start: number): Promise<void> {
    for (let at = 0; at < into.length;) {
      const read = await this.#file.read(into.subarray(at), this.#start + start + at);
      if (read === 0) {
        throw this.damaged(`it ends at byte ${start + at} of ${this.sizeBytes}, within a read`);
      }
      at += read;
    }
  }

  /** See `OpenFile.expect`. */
  expect(start: number, stop: number): void {
    this.#file.expect?.(this.#start + start, this.#start + stop);
  }

  damaged(what: string, cause?: unknown): LeatError {
    return this.refused("data_loss", `Damaged ${this.format} file ${this.path}: ${what}.`, cause);
  }

  /** Returns the error for a file that Leat cannot read at all. */
  unsupported(what: string): LeatError {
    return this.refused("unimplemented", `Cannot read ${this.format} file ${this.path}: ${what}.`);
  }

  /**
   * Wraps an error that a library or a codec threw about these bytes as `data_loss`, and a lack of
   * memory as `resource_exhausted`. A `LeatError` is returned as it is, except that a format's
   * `resource_exhausted` or `unimplemented` gets the file's name.
   *
   * @param location The damaged part of the file, in messages.
   */
  failed(location: string, error: unknown): LeatError {
    if (error instanceof ReadingFailure) return error;
    // The library's message is about its own variables, also as a cause.
    if (trustedBytes(error)) {
      const what = "it does not fit the format; write the file again, or leave it out";
      return this.damaged(`${location}: ${what}`);
    }
    const { code, message, details } = LeatError.from(error);
    const isLimit = code === "resource_exhausted" || code === "unimplemented";
    if (isLimit && details?.path === undefined) {
      const what = `Cannot read ${this.format} file ${this.path}: ${location}: ${message}.`;
      return this.refused(code, what, error);
    }
    if (error instanceof LeatError) return error;
    return this.damaged(`${location}: ${message}`, error);
  }

  /** Returns an error whose details name this file. */
  refused(code: LeatErrorCode, message: string, cause?: unknown): LeatError {
    const { path } = this;
    return new LeatError(
      code,
      message,
      cause === undefined ? { details: { path } } : { details: { path }, cause },
    );
  }
}

/**
 * Whether a library failed because it trusted the bytes: it used a missing value, or made a view longer
 * than its bytes. Formats bound what they allocate, so such a view is damage, not a lack of memory.
 */
function trustedBytes(error: unknown): boolean {
  return error instanceof TypeError ||
    error instanceof RangeError && /^Invalid typed array length/.test(error.message);
}

/** Presents bytes in memory as a file. */
export function memoryFile(bytes: Uint8Array): OpenFile {
  return {
    sizeBytes: bytes.length,
    read(into, offset) {
      const part = bytes.subarray(offset, offset + into.length);
      into.set(part);
      return part.length;
    },
    close() {},
  };
}
