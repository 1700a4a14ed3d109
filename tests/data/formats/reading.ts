/**
 * Shared by tests of formats: files in memory that behave like local or remote ones, and reading to
 * the end.
 */

import { joined } from "../../../core/bytes.ts";
import { END } from "../../../data/iterator.ts";
import { AGAIN } from "../../../data/iterators/stepping.ts";
import type { OpenFile } from "../../../data/host.ts";
import { ByteReader } from "../../../data/formats/byte_reader.ts";
import type { Compression } from "../../../data/formats/compression/compression.ts";
import type { FormatReader } from "../../../data/formats/format_reader.ts";

/** The behaviour of a test's file. */
export interface FileOptions {
  /** Whether reads complete asynchronously, as with remote storage. */
  readonly later?: boolean;
  /** Maximum bytes that one read returns. */
  readonly bytesPerRead?: number;
  /** Offset from which reading fails. */
  readonly failsAt?: number;
}

/** An open file in memory that counts its reads. */
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

/** All behaviours of a file: synchronous or not, with large or small reads. */
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

/** Steps to the end; errors in place of elements. */
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
  return joined(parts);
}
