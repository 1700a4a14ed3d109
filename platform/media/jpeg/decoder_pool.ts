/**
 * The decompressors of a thread, at most four per core. They are kept for later images, because
 * creating a handle and its memory costs about as much as decoding a small image.
 */

import type { TurboDecoder } from "./turbo_decoder.ts";

interface Waiting {
  readonly create: () => TurboDecoder;
  readonly granted: PromiseWithResolvers<TurboDecoder>;
}

/** Decompressors, each in use by one image at a time. */
export class DecoderPool {
  readonly #max: number;
  readonly #idle: TurboDecoder[] = [];
  #busy = 0;
  /** Images that wait for a decompressor, the oldest first. */
  readonly #waiting: Waiting[] = [];
  /** Set while a caller of `empty` waits. */
  #emptied: PromiseWithResolvers<void> | undefined;

  /** @param max Limit of the decompressors in use. One holds an image until its pixels are copied out. */
  constructor(max: number) {
    this.#max = max;
  }

  /** Takes a decompressor; `create` makes one if none is idle. Return it with `give()` or `discard()`. */
  take(create: () => TurboDecoder): TurboDecoder | Promise<TurboDecoder> {
    if (this.#busy >= this.#max) {
      const granted = Promise.withResolvers<TurboDecoder>();
      this.#waiting.push({ create, granted });
      return granted.promise;
    }
    const decoder = this.#idle.pop() ?? create();
    this.#busy++;
    return decoder;
  }

  /** Returns a decompressor to the pool. The image that has waited longest gets it. */
  give(decoder: TurboDecoder): void {
    const next = this.#waiting.shift();
    if (next !== undefined) return next.granted.resolve(decoder);
    decoder.trim();
    this.#idle.push(decoder);
    this.#released();
  }

  /**
   * Frees a decompressor that has failed. The library does not reset all of its state: after a
   * truncated JPEG it refuses valid ones.
   */
  discard(decoder: TurboDecoder): void {
    decoder.free();
    for (;;) {
      const next = this.#waiting.shift();
      if (next === undefined) return this.#released();
      try {
        return next.granted.resolve(next.create());
      } catch (error) {
        // This image fails. Try to create one for the next, which would wait forever.
        next.granted.reject(error);
      }
    }
  }

  /**
   * Frees all decompressors once none is busy. A thread whose pool is empty can end without a leak.
   */
  empty(): Promise<void> {
    const { promise } = this.#emptied ??= Promise.withResolvers<void>();
    if (this.#busy === 0) this.#freeAll();
    return promise;
  }

  #released(): void {
    this.#busy--;
    if (this.#emptied !== undefined && this.#busy === 0) this.#freeAll();
  }

  #freeAll(): void {
    for (const decoder of this.#idle.splice(0)) decoder.free();
    this.#emptied?.resolve();
    this.#emptied = undefined;
  }
}

/**
 * More than one, so that cores decode other images while decoded pixels wait for the pipeline's
 * thread.
 */
const DECODERS_PER_CORE = 4;

export const decoderPool: DecoderPool = new DecoderPool(
  DECODERS_PER_CORE * navigator.hardwareConcurrency,
);
