/** A file in far storage: sequential reads request few large ranges, random reads small ones. */

import { LeatError } from "../../core/error.ts";
import type { OpenFile } from "../../data/host.ts";
import type { FarObject } from "./far_object.ts";
import { RangeWindow } from "./range_window.ts";

/** Bytes requested at opening: most single-example files need no other request. */
export const FIRST_RANGE_BYTES = 1024 * 1024;

/** The least bytes requested for a random read: usually enough for a file's whole footer or index. */
export const JUMP_RANGE_BYTES = 256 * 1024;

/** Limit of the bytes per request. Ranges double up to it while a file is read in order. */
const RANGE_BYTES_MAX = 8 * 1024 * 1024;

/** Limit of the ranges kept of an open file: the one being read, and the next, which is arriving. */
const WINDOWS_MAX = 2;

/**
 * An open object. It keeps at most two ranges, 16 MiB together, and ranges that reads wait for. If the
 * server ignores ranges, it keeps the whole object instead. Reads fail with `failed_precondition` if
 * the object is replaced.
 */
export class FarFile implements OpenFile {
  readonly sizeBytes: number;
  readonly tag: string | undefined;
  readonly #object: FarObject;
  readonly #closed: AbortController;
  /** The kept ranges, the newest last. */
  readonly #windows: RangeWindow[];
  #rangeBytes = FIRST_RANGE_BYTES;
  /** Whether the file seems to be read in order. */
  #isSequential = true;

  private constructor(object: FarObject, closed: AbortController, first: RangeWindow) {
    this.sizeBytes = object.sizeBytes;
    this.tag = object.tag;
    this.#object = object;
    this.#closed = closed;
    this.#windows = [first];
  }

  /**
   * Opens an object by reading its first range.
   * @throws {LeatError} `cancelled` once aborted; otherwise the storage's error.
   */
  static async open(object: FarObject, signal?: AbortSignal): Promise<FarFile> {
    const closed = new AbortController();
    const abort = () => closed.abort();
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted) abort();
    try {
      const first = new RangeWindow(object, 0, FIRST_RANGE_BYTES, closed.signal);
      await first.answered();
      return new FarFile(object, closed, first);
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  read(into: Uint8Array, offset: number): number | Promise<number> {
    if (this.#closed.signal.aborted) {
      throw new LeatError(
        "failed_precondition",
        `Cannot read ${this.#object.name}: it was closed.`,
      );
    }
    if (offset >= this.sizeBytes || into.length === 0) return 0;
    const window = this.#windowAt(offset, into.length);
    return window.isReady(offset, into.length)
      ? window.copy(into, offset)
      : this.#readLater(window, into, offset);
  }

  close(): void {
    this.#closed.abort();
    this.#windows.length = 0;
  }

  async #readLater(window: RangeWindow, into: Uint8Array, offset: number): Promise<number> {
    try {
      await window.arrived(offset, into.length);
      return window.copy(into, offset);
    } catch (error) {
      // The next read must request the bytes again.
      const index = this.#windows.indexOf(window);
      if (index >= 0) this.#windows.splice(index, 1);
      throw error;
    }
  }

  #windowAt(offset: number, count: number): RangeWindow {
    // A range read ahead may have failed long ago. The storage may have the bytes now.
    const failed = this.#windows.findIndex((window) =>
      window.covers(offset) && window.hasFailedAt(offset)
    );
    if (failed >= 0) this.#windows.splice(failed, 1);
    const window = this.#windows.find((window) => window.covers(offset)) ??
      this.#moveTo(offset, count);
    if (this.#isSequential && window === this.#windows.at(-1)) this.#readAhead(window.stop);
    return window;
  }

  #moveTo(offset: number, count: number): RangeWindow {
    this.#isSequential = this.#windows.at(-1)?.stop === offset;
    if (this.#isSequential) return this.#readAhead(offset)!;
    this.#rangeBytes = Math.min(Math.max(JUMP_RANGE_BYTES, count), RANGE_BYTES_MAX);
    // Near the end the range starts earlier. Often the last bytes are read first, because they hold
    // the length of a footer. The next read is that of the footer, which is before them.
    const start = Math.max(0, Math.min(offset, this.sizeBytes - this.#rangeBytes));
    return this.#startRange(start);
  }

  #readAhead(start: number): RangeWindow | undefined {
    if (start >= this.sizeBytes) return undefined;
    this.#rangeBytes = Math.min(2 * this.#rangeBytes, RANGE_BYTES_MAX);
    return this.#startRange(start);
  }

  #startRange(start: number): RangeWindow {
    const stop = Math.min(start + this.#rangeBytes, this.sizeBytes);
    const window = new RangeWindow(this.#object, start, stop, this.#closed.signal);
    this.#windows.push(window);
    while (this.#windows.length > WINDOWS_MAX) this.#windows.shift()!.drop();
    return window;
  }
}
