/** What tests of formats share: files of bytes, near and far, and reading one to its end. */

import { END } from "../../../data/iterator.ts";
import { AGAIN } from "../../../data/iterators/stepping.ts";
import type { OpenFile } from "../../../data/host.ts";
import { ByteReader } from "../../../data/formats/byte_reader.ts";
import type { Compression } from "../../../data/formats/compression/compression.ts";
import type { FormatReader } from "../../../data/formats/format_reader.ts";

/** How a test's file answers. */
export interface FileOptions {
  /** At once, or later as far storage does. */
  readonly later?: boolean;
  /** Most bytes that one read returns. */
  readonly bytesPerRead?: number;
  /** Reading fails from this offset on. */
  readonly failsAt?: number;
}

/** A file that is open over bytes, and counts what is asked of it. */
export class BytesFile implements OpenFile {
  readonly sizeBytes: number;
  reads = 0;
  closes = 0;
  readonly #bytes: Uint8Array;
  readonly #options: FileOptions;

  constructor(bytes: Uint8Array, options: FileOptions = {}) {
    this.#bytes = bytes;
    this.#options = options;
    this.sizeBytes = bytes.length;
  }

  read(into: Uint8Array, offset: number): number | Promise<number> {
    this.reads++;
    return this.#options.later
      ? Promise.resolve().then(() => this.#copy(into, offset))
      : this.#copy(into, offset);
  }

  close(): void {
    this.closes++;
  }

  #copy(into: Uint8Array, offset: number): number {
    const { bytesPerRead = Infinity, failsAt = Infinity } = this.#options;
    if (offset >= failsAt) throw new Error("the disk is on fire");
    const stop = Math.min(this.#bytes.length, offset + into.length, offset + bytesPerRead, failsAt);
    into.set(this.#bytes.subarray(offset, stop));
    return stop - offset;
  }
}

/** Every way that a file may answer: at once or later, in large pieces or small ones. */
export const ANSWERS: readonly FileOptions[] = [
  {},
  { later: true },
  { bytesPerRead: 7 },
  { later: true, bytesPerRead: 1000 },
];

/** Opens bytes as a file called `data`. */
export function open(
  bytes: Uint8Array,
  options?: FileOptions,
  compression?: Compression,
): ByteReader {
  return new ByteReader("data", new BytesFile(bytes, options), compression);
}

/** Steps to the end; errors stand where elements would. */
export async function readAll(reader: FormatReader): Promise<unknown[]> {
  const found: unknown[] = [];
  for (;;) {
    try {
      const element = await reader.step();
      if (element === END) break;
      if (element !== AGAIN) found.push(element);
    } catch (error) {
      found.push(error);
    }
    if (found.length > 1_000_000) throw new Error("a reader that never ends");
  }
  reader.close();
  return found;
}

/** `parts` one after the other. */
export function concat(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
