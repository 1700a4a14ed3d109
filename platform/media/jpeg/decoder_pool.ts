/**
 * The decompressors of a thread: at most four for each core, kept for the next images. A handle and
 * its memory cost about as much to create as a small image to decode.
 */

import type { TurboDecoder } from "./turbo_decoder.ts";

interface Waiting {
  readonly create: () => TurboDecoder;
  readonly taken: PromiseWithResolvers<TurboDecoder>;
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

  /** @param max Most decompressors, and so most images that are decoded or wait to be read. */
  constructor(max: number) {
    this.#max = max;
  }

  /** Takes a decompressor; `create` makes it if none is idle. Return it with `give()`. */
  take(create: () => TurboDecoder): TurboDecoder | Promise<TurboDecoder> {
    if (this.#busy >= this.#max) {
      const taken = Promise.withResolvers<TurboDecoder>();
      this.#waiting.push({ create, taken });
      return taken.promise;
    }
    const decoder = this.#idle.pop() ?? create();
    this.#busy++;
    return decoder;
  }

  /** Takes a decompressor back. The image that has waited longest gets it. */
  give(decoder: TurboDecoder): void {
    const next = this.#waiting.shift();
    if (next !== undefined) return next.taken.resolve(decoder);
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
    const next = this.#waiting.shift();
    if (next === undefined) return this.#released();
    try {
      next.taken.resolve(next.create());
    } catch (error) {
      this.#released();
      next.taken.reject(error);
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
 * More than one: decoded pixels may have to wait for the pipeline's thread, and meanwhile the cores
 * decode other images.
 */
const DECODERS_PER_CORE = 4;

export const decoderPool: DecoderPool = new DecoderPool(
  DECODERS_PER_CORE * navigator.hardwareConcurrency,
);
