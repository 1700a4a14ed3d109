/** Measures how long batches take to encode and to decode. */
import { LeatError } from "../../mod.ts";
import { decodeMessage, encodeMessage } from "../../transport/codec.ts";
import type { Profile } from "./profile.ts";

/** After the warm-up, one in this many batches is encoded and decoded. */
const CODEC_EVERY = 8;

/** Encodes batches as a worker does, decodes them as a trainer does, and measures the time. */
export class CodecTimes {
  #batches = 0;
  #measured = 0;
  #encodeMs = 0;
  #decodeMs = 0;
  #bytes = 0;

  /** The time of encoding and decoding together, in ms. */
  get totalMs(): number {
    return this.#encodeMs + this.#decodeMs;
  }

  /** Discards the measurements of the warm-up, when code was still being compiled. */
  reset(): void {
    this.#batches =
      this.#measured =
      this.#encodeMs =
      this.#decodeMs =
      this.#bytes =
        0;
  }

  /** Counts a batch, and measures one in {@linkcode CODEC_EVERY}. */
  sample(batch: unknown): void {
    if (this.#batches++ % CODEC_EVERY === 0) this.measure(batch);
  }

  /** Encodes and decodes a batch, and records the times and the size. */
  measure(batch: unknown): void {
    const startMs = performance.now();
    let frame: Uint8Array;
    try {
      frame = encodeMessage(batch);
    } catch (error) {
      throw new LeatError(
        "failed_precondition",
        "The pipeline's elements cannot be sent from a worker to a trainer",
        { cause: error },
      );
    }
    const encodedMs = performance.now();
    decodeMessage(frame);
    this.#decodeMs += performance.now() - encodedMs;
    this.#encodeMs += encodedMs - startMs;
    this.#bytes += frame.byteLength;
    this.#measured++;
  }

  /** Returns the mean times and the mean size of a batch. Times are divided by `contention`. */
  result(contention: number): Pick<Profile, "encodeMs" | "decodeMs" | "batchBytes"> {
    const per = (sum: number) => sum / this.#measured;
    return {
      encodeMs: per(this.#encodeMs) / contention,
      decodeMs: per(this.#decodeMs) / contention,
      batchBytes: Math.round(per(this.#bytes)),
    };
  }
}
