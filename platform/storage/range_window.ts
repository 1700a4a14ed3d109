/** A window on an object in far storage: a range of its bytes, which arrive one after another. */

import { LeatError } from "../../core/error.ts";
import type { FarObject, FarRange } from "./far_object.ts";

/** The bytes from `start` up to `stop`: one request, and another if the connection breaks. */
export class RangeWindow {
  readonly start: number;
  readonly #object: FarObject;
  readonly #abandoned = new AbortController();
  readonly #signal: AbortSignal;
  #stop: number;
  /** `undefined` until the first answer tells the size. */
  #bytes: Uint8Array | undefined;
  #filled = 0;
  #error: LeatError | undefined;
  #changed = Promise.withResolvers<void>();
  #waiting = 0;
  #dropped = false;

  /** @param signal Cancels the request. */
  constructor(object: FarObject, start: number, stop: number, signal: AbortSignal) {
    this.start = start;
    this.#object = object;
    this.#stop = stop;
    this.#signal = AbortSignal.any([signal, this.#abandoned.signal]);
    this.#arrive();
  }

  /** The window's end: the requested one, or the end of the object. */
  get stop(): number {
    return this.#stop;
  }

  /** Whether the window has the byte at `offset`, now or later. */
  covers(offset: number): boolean {
    return this.start <= offset && offset < this.#stop;
  }

  /** Whether `count` bytes from `offset` on have arrived, or all that the window has there. */
  isReady(offset: number, count: number): boolean {
    return this.#filled >= Math.min(offset + count, this.#stop) - this.start;
  }

  /** Copies what has arrived from `offset` on, and returns the number of bytes. */
  copy(into: Uint8Array, offset: number): number {
    const first = offset - this.start;
    const count = Math.max(0, Math.min(into.length, this.#filled - first));
    if (count > 0) into.set(this.#bytes!.subarray(first, first + count));
    return count;
  }

  /** Resolves once the object has answered. */
  async answered(): Promise<void> {
    await this.#until(() => this.#bytes !== undefined);
  }

  /**
   * Resolves once `isReady()`, or if the request fails after the byte at `offset` has arrived.
   * Rejects if it fails before.
   */
  async reached(offset: number, count: number): Promise<void> {
    await this.#until(() =>
      this.isReady(offset, count) ||
      (this.#error !== undefined && this.#filled > offset - this.start)
    );
  }

  /** Cancels the request once no reader waits for it. No new reader may come. */
  drop(): void {
    this.#dropped = true;
    if (this.#waiting === 0) this.#abandoned.abort();
  }

  async #until(holds: () => boolean): Promise<void> {
    this.#waiting++;
    try {
      while (!holds()) {
        if (this.#error !== undefined) throw this.#error;
        await this.#changed.promise;
      }
    } finally {
      this.#waiting--;
      if (this.#dropped) this.drop();
    }
  }

  async #arrive(): Promise<void> {
    try {
      const { retries } = this.#object.client;
      await retries.run(this.#signal, () => this.#attempt(), () => this.#filled);
    } catch (error) {
      this.#error = LeatError.from(error);
      this.#tell();
    }
  }

  /** Requests the missing bytes. */
  async #attempt(): Promise<void> {
    const from = this.start + this.#filled;
    const range = await this.#object.ask(from, this.#stop, this.#signal);
    const bytes = this.#bytes ??= this.#makeRoom(range);
    this.#tell();
    let skipped = from - range.start;
    for await (const chunk of range.chunks()) {
      // Checked here, not after the last chunk: a body read to its end frees its connection for reuse.
      if (this.#filled === bytes.length) break;
      const wanted = chunk.subarray(skipped, skipped + bytes.length - this.#filled);
      skipped = Math.max(0, skipped - chunk.length);
      bytes.set(wanted, this.#filled);
      this.#filled += wanted.length;
      this.#tell();
    }
    if (this.#filled < bytes.length) {
      throw new LeatError(
        "unavailable",
        `Cannot read ${this.#object.name}: the answer ended at byte ` +
          `${this.start + this.#filled}, before byte ${this.#stop}.`,
      );
    }
  }

  #makeRoom({ whole }: FarRange): Uint8Array {
    const { sizeBytes } = this.#object;
    this.#stop = whole ? sizeBytes : Math.min(this.#stop, sizeBytes);
    return new Uint8Array(this.#stop - this.start);
  }

  #tell(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
