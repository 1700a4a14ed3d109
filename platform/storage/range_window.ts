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
  /** `undefined` until the first answer gives the object's size. */
  #bytes: Uint8Array | undefined;
  #filled = 0;
  #error: LeatError | undefined;
  #changed = Promise.withResolvers<void>();
  #waiters = 0;
  #dropped = false;

  /** @param signal Cancels the request. */
  constructor(object: FarObject, start: number, stop: number, signal: AbortSignal) {
    this.start = start;
    this.#object = object;
    this.#stop = stop;
    this.#signal = AbortSignal.any([signal, this.#abandoned.signal]);
    this.#load();
  }

  /** The window's end: the requested one, or the end of the object. */
  get stop(): number {
    return this.#stop;
  }

  /** Whether the window has the byte at `offset`, now or later. */
  covers(offset: number): boolean {
    return this.start <= offset && offset < this.#stop;
  }

  /** Whether `count` bytes from `offset` on have arrived, or all up to the window's end if fewer. */
  isReady(offset: number, count: number): boolean {
    return this.#filled >= Math.min(offset + count, this.#stop) - this.start;
  }

  /**
   * Requests the missing bytes again if the request failed before the byte at `offset` arrived. It may
   * have failed long ago, and the storage may have the bytes now.
   */
  resume(offset: number): void {
    if (this.#error === undefined || this.#filled > offset - this.start) return;
    this.#error = undefined;
    this.#load();
  }

  /** Copies the bytes from `offset` on that have arrived, and returns their number. */
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
   * Rejects if the request fails before that.
   */
  async arrived(offset: number, count: number): Promise<void> {
    await this.#until(() =>
      this.isReady(offset, count) ||
      (this.#error !== undefined && this.#filled > offset - this.start)
    );
  }

  /** Cancels the request once no reader waits for it. Nobody may start to wait after this call. */
  drop(): void {
    this.#dropped = true;
    if (this.#waiters === 0) this.#abandoned.abort();
  }

  async #until(condition: () => boolean): Promise<void> {
    this.#waiters++;
    try {
      while (!condition()) {
        if (this.#error !== undefined) throw this.#error;
        await this.#changed.promise;
      }
    } finally {
      this.#waiters--;
      if (this.#dropped) this.drop();
    }
  }

  async #load(): Promise<void> {
    try {
      const { retries } = this.#object.client;
      await retries.run(this.#signal, () => this.#attempt(), () => this.#filled);
    } catch (error) {
      this.#error = LeatError.from(error);
      this.#notify();
    }
  }

  /** Requests the missing bytes. */
  async #attempt(): Promise<void> {
    const from = this.start + this.#filled;
    const range = await this.#object.requestRange(from, this.#stop, this.#signal);
    const bytes = this.#bytes ??= this.#allocate(range);
    this.#notify();
    let skipped = from - range.start;
    for await (const chunk of range.chunks()) {
      // Not checked after the last chunk: the loop reads the body to its end, so that its connection can
      // be used again.
      if (this.#filled === bytes.length) break;
      const wanted = chunk.subarray(skipped, skipped + bytes.length - this.#filled);
      skipped = Math.max(0, skipped - chunk.length);
      bytes.set(wanted, this.#filled);
      this.#filled += wanted.length;
      this.#notify();
    }
    if (this.#filled < bytes.length) {
      throw new LeatError(
        "unavailable",
        `Cannot read ${this.#object.name}: the answer ended at byte ` +
          `${this.start + this.#filled}, before byte ${this.#stop}.`,
      );
    }
  }

  #allocate({ whole }: FarRange): Uint8Array {
    const { sizeBytes } = this.#object;
    this.#stop = whole ? sizeBytes : Math.min(this.#stop, sizeBytes);
    return new Uint8Array(this.#stop - this.start);
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
