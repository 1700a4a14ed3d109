/** A file in far storage: sequential reads request few large ranges, random reads small ones. */

import { LeatError } from "../../core/error.ts";
import type { OpenFile } from "../../data/host.ts";
import type { FarObject } from "./far_object.ts";
import { RangeWindow } from "./range_window.ts";

/** Bytes requested at opening: most single-example files need no other request. */
export const FIRST_RANGE_BYTES = 1024 * 1024;

/** The least bytes requested for a random read: usually enough for a file's whole footer or index. */
export const JUMP_RANGE_BYTES = 256 * 1024;

/** The least bytes requested if many places of a file are read in turn. */
const RANGE_BYTES_MIN = 16 * 1024;

/** Limit of the bytes per request. Ranges double up to it while a file is read in order. */
const RANGE_BYTES_MAX = 8 * 1024 * 1024;

/** Limit of the bytes kept of an open file. */
export const KEPT_BYTES_MAX = 16 * 1024 * 1024;

/** The most bytes that a reader in order leaves out, or a quarter of the range that it has read. */
const SKIPPED_BYTES_MAX = 64 * 1024;

/** The most ranges that a reader may expect; more would not get 16 KiB each of what is kept. */
const EXPECTED_MAX = 1_024;

/** A range that a file keeps. */
interface KeptRange {
  readonly window: RangeWindow;
  /** The bytes requested, before they were cut at the end of the file or at another range. */
  readonly sizeBytes: number;
  /** Whether the bytes before it were read too, so that those after it will probably be read. */
  readonly isInOrder: boolean;
  /** What `#requestedBytes` was when it was last used. */
  usedAt: number;
}

/**
 * An open object. Several places of it may be read in order, in turn, such as the arrays of an archive:
 * of each the range being read is kept, and the next, which is arriving. All have 16 MiB together, not
 * counting ranges that reads wait for; the least recently used is dropped. If the server ignores ranges,
 * it keeps the whole object instead. Reads fail with `failed_precondition` if the object is replaced.
 */
export class FarFile implements OpenFile {
  readonly sizeBytes: number;
  readonly tag: string | undefined;
  readonly #object: FarObject;
  readonly #closed: AbortController;
  /** The least recently used first. */
  readonly #kept: KeptRange[] = [];
  /** See `expect()`. */
  readonly #expected: { readonly start: number; readonly stop: number }[] = [];
  /** Bytes of all ranges that were requested. */
  #requestedBytes = 0;

  private constructor(
    object: FarObject,
    closed: AbortController,
    first: RangeWindow,
    isInOrder: boolean,
  ) {
    this.sizeBytes = object.sizeBytes;
    this.tag = object.tag;
    this.#object = object;
    this.#closed = closed;
    this.#keep(first, first.stop, isInOrder);
  }

  /**
   * Opens an object by reading its first range. If the caller chose its size, reads in order begin
   * when the second range is read.
   * @throws {LeatError} `cancelled` once aborted; otherwise the storage's error.
   */
  static async open(
    object: FarObject,
    signal?: AbortSignal,
    firstBytes?: number,
  ): Promise<FarFile> {
    const closed = new AbortController();
    const abort = () => closed.abort();
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted) abort();
    try {
      const bytes = Math.min(firstBytes ?? Infinity, FIRST_RANGE_BYTES);
      const first = new RangeWindow(object, 0, bytes, closed.signal);
      await first.answered();
      return new FarFile(object, closed, first, firstBytes === undefined);
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

  expect(start: number, stop: number): void {
    if (this.#expected.length < EXPECTED_MAX) this.#expected.push({ start, stop });
  }

  close(): void {
    this.#closed.abort();
    this.#kept.length = 0;
  }

  async #readLater(window: RangeWindow, into: Uint8Array, offset: number): Promise<number> {
    await window.arrived(offset, into.length);
    return window.copy(into, offset);
  }

  #windowAt(offset: number, count: number): RangeWindow {
    const range = this.#rangeOf(offset) ?? this.#moveTo(offset, count);
    range.window.resume(offset);
    this.#use(range);
    // The next range may be on its way already.
    const next = this.#rangeOf(range.window.stop);
    if (next !== undefined) this.#use(next);
    else if (range.isInOrder && isNext(offset, range.window.start, range)) this.#readAhead(range);
    return range.window;
  }

  #rangeOf(offset: number): KeptRange | undefined {
    return this.#kept.find(({ window }) => window.covers(offset));
  }

  #use(range: KeptRange): void {
    this.#kept.splice(this.#kept.indexOf(range), 1);
    this.#kept.push(range);
    range.usedAt = this.#requestedBytes;
  }

  #moveTo(offset: number, count: number): KeptRange {
    const previous = this.#kept.find((range) => isNext(offset, range.window.stop, range));
    const isInOrder = this.#expected.length === 0
      ? previous !== undefined
      : this.#expectedStop(offset) !== undefined;
    if (isInOrder) return this.#continue(previous, offset, count);
    const least = Math.min(JUMP_RANGE_BYTES, this.#share(1));
    const sizeBytes = Math.min(Math.max(least, count), RANGE_BYTES_MAX);
    // Near the end the range starts earlier. Often the last bytes are read first, because they hold
    // the length of a footer. The next read is that of the footer, which is before them.
    const wanted = Math.min(offset, this.sizeBytes - sizeBytes);
    const stops = this.#kept.map(({ window }) => window.stop).filter((stop) => stop <= offset);
    return this.#request(Math.max(0, wanted, ...stops), sizeBytes, false);
  }

  /** Requests the range after one that will be read up to its end, unless nothing there will be read. */
  #readAhead(range: KeptRange): void {
    const { stop } = range.window;
    const isWanted = this.#expected.length === 0 || this.#expectedStop(stop) !== undefined;
    if (isWanted && stop < this.sizeBytes) this.#continue(range, stop, 0);
  }

  #continue(previous: KeptRange | undefined, start: number, count: number): KeptRange {
    const left = this.#kept.find(({ window }) => window.stop === previous?.window.start);
    if (left !== undefined) this.#drop(left);
    const isExpected = this.#expected.length > 0;
    const doubled = isExpected ? RANGE_BYTES_MAX : 2 * previous!.sizeBytes;
    const wanted = Math.max(doubled, JUMP_RANGE_BYTES, count);
    const share = Math.min(Math.max(this.#share(0), count), RANGE_BYTES_MAX);
    return this.#request(start, Math.min(wanted, share), true);
  }

  #expectedStop(offset: number): number | undefined {
    return this.#expected.find(({ start, stop }) => start <= offset && offset < stop)?.stop;
  }

  /**
   * The most bytes of a range, so that two fit for each place that is being read. If there are several,
   * a third is left for ranges that were requested when there were fewer.
   * @param added The number of places that are not among the kept ranges yet.
   */
  #share(added: number): number {
    const stops = new Set(this.#kept.map(({ window }) => window.stop));
    const kept = this.#kept.filter(({ window }) => !stops.has(window.start)).length + added;
    const places = this.#expected.length || kept;
    const share = Math.floor(KEPT_BYTES_MAX / (3 * places - 1));
    return Math.min(Math.max(share, RANGE_BYTES_MIN), RANGE_BYTES_MAX);
  }

  #request(start: number, sizeBytes: number, isInOrder: boolean): KeptRange {
    const starts = this.#kept.map(({ window }) => window.start).filter((other) => other > start);
    const expectedStop = isInOrder ? this.#expectedStop(start) ?? Infinity : Infinity;
    const stop = Math.min(start + sizeBytes, this.sizeBytes, expectedStop, ...starts);
    const window = new RangeWindow(this.#object, start, stop, this.#closed.signal);
    return this.#keep(window, sizeBytes, isInOrder);
  }

  #keep(window: RangeWindow, sizeBytes: number, isInOrder: boolean): KeptRange {
    this.#requestedBytes += window.stop - window.start;
    const range = { window, sizeBytes, isInOrder, usedAt: this.#requestedBytes };
    this.#kept.push(range);
    // The last two are this one, and that before it, which is perhaps being read.
    while (this.#kept.length > 2 && this.#isTooMuch()) this.#drop(this.#kept[0]!);
    return range;
  }

  /** Whether too much is kept, or something that has not been used while as much was requested. */
  #isTooMuch(): boolean {
    const bytes = this.#kept.reduce((sum, { window }) => sum + window.stop - window.start, 0);
    const unusedBytes = this.#requestedBytes - this.#kept[0]!.usedAt;
    return bytes > KEPT_BYTES_MAX || unusedBytes > KEPT_BYTES_MAX;
  }

  #drop(range: KeptRange): void {
    this.#kept.splice(this.#kept.indexOf(range), 1);
    range.window.drop();
  }
}

/** Whether a reader that is at `end`, in or behind a range, goes on in order with a read at `offset`. */
function isNext(offset: number, end: number, { sizeBytes, isInOrder }: KeptRange): boolean {
  const skippedMax = Math.max(SKIPPED_BYTES_MAX, isInOrder ? sizeBytes / 4 : 0);
  return offset >= end && offset - end < skippedMax;
}
