/**
 * The host: everything a pipeline needs of the machine it runs on, as one small interface.
 *
 * Nothing in `data` reads a clock, draws entropy, opens a file or loads a module by itself; it asks
 * its host. A thread, a process and a confined sandbox are three implementations of the same page.
 */
import { LeatError } from "../core/error.ts";
import type { Tensor } from "../core/tensor.ts";

/** What a pipeline may ask of the machine. */
export interface Host {
  /** A monotonic clock in milliseconds; only differences mean anything. */
  nowMs(): number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason if it is aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Resolves in a later macrotask, so that timers and sockets get their turn in between. */
  yield(): Promise<void>;
  /** Sixty-four unpredictable bits; drawn once per iteration that has no seed. */
  entropy64(): bigint;
  readonly files: Files;
  readonly images: ImageCodec;
  /** Imports an ECMAScript module, for user functions that travel by reference. */
  importModule(url: string): Promise<Record<string, unknown>>;
}

/** Read-only access to files, by whatever names the implementation understands. */
export interface Files {
  /** Opens a file for reading; `not_found` or `permission_denied` when it cannot. */
  open(path: string): Promise<OpenFile>;
  /** The files matching a glob pattern, sorted by name; empty when none does. */
  list(pattern: string): Promise<string[]>;
}

/** One open file. It holds a descriptor until `close()`. */
export interface OpenFile {
  readonly sizeBytes: number;
  /**
   * Reads at most `into.byteLength` bytes at `offset` and says how many it read; 0 is the end.
   * It may answer at once, when the bytes are in memory.
   */
  read(into: Uint8Array, offset: number): number | Promise<number>;
  /** Gives the descriptor back; idempotent. */
  close(): void;
}

/** How an image is brought to the wanted pixels: crop, then resize, then flip. */
export interface ImageDecodeOptions {
  /** The rectangle to keep, in pixels of the original. */
  readonly crop?: {
    readonly x: number;
    readonly y: number;
    readonly width: number;
    readonly height: number;
  };
  /** The size to scale to, in pixels. */
  readonly resize?: { readonly width: number; readonly height: number };
  /** Mirrors left and right. */
  readonly flip?: boolean;
}

/** Decoding of compressed images, served by the host so that confined functions have it too. */
export interface ImageCodec {
  /** The pixels as a uint8 tensor of shape [height, width, 3]; `data_loss` for a damaged image. */
  decode(bytes: Uint8Array, options?: ImageDecodeOptions): Tensor | Promise<Tensor>;
  /** The size in pixels, read from the header alone. */
  size(bytes: Uint8Array): { width: number; height: number };
}

let installed: Host | undefined;

/** Names the host of iterators that are opened without one. Called once, by the program's entry. */
export function installHost(host: Host): void {
  installed = host;
}

/** The installed host; `failed_precondition` when no entry module has installed one. */
export function installedHost(): Host {
  if (installed === undefined) {
    throw new LeatError(
      "failed_precondition",
      "No host is installed: import Dataset from mod.ts, or call installHost() before iterating.",
    );
  }
  return installed;
}
