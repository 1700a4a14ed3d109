/**
 * The host: everything a pipeline needs of the machine it runs on, as one small interface.
 *
 * Nothing in `data` reads a clock, draws entropy, opens a file or loads a module by itself; it asks
 * its host. Threads, confined processes and the simulator each implement it.
 */
import { LeatError } from "../core/error.ts";
import type { Tensor } from "../core/tensor.ts";
import type { ForeignRunners } from "./foreign/foreign_runners.ts";

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
  readonly newFiles: NewFiles;
  readonly images: ImageCodec;
  readonly audio: AudioCodec;
  /** Imports an ECMAScript module, for user functions that travel by reference. */
  importModule(url: string): Promise<Record<string, unknown>>;
  /** Evaluates the script of a user function that travelled as text. Left out: the engine does, in the global scope. */
  evaluate?(script: string): unknown;
  /**
   * Whether pipelines that this program did not build run here in full, because this is the place made for them: a worker's runner.
   * Default: false. See `data/foreign/foreign.ts`.
   */
  readonly runsForeign?: boolean;
  /** Runs functions that this program did not build apart from it. Left out: they are refused. */
  readonly foreignRunners?: ForeignRunners;
  /** Says something to whoever watches the machine, and to nobody else. */
  warn(message: string): void;
}

/** Read-only access to files, by whatever names the implementation understands. */
export interface Files {
  /**
   * Opens a file for reading; `not_found` or `permission_denied` when it cannot. Storage that is far away, and may take long to
   * say so, gives up with `cancelled` once `signal` is aborted.
   */
  open(path: string, signal?: AbortSignal): Promise<OpenFile>;
  /** The files matching a glob pattern, sorted by name; empty when none does. `signal` as for `open`. */
  list(pattern: string, signal?: AbortSignal): Promise<string[]>;
}

/** One open file. It holds a descriptor, or a connection, until `close()`. */
export interface OpenFile {
  readonly sizeBytes: number;
  /**
   * Reads at most `into.byteLength` bytes at `offset` and says how many it read; 0 is the end.
   * It may answer at once, when the bytes are in memory.
   */
  read(into: Uint8Array, offset: number): number | Promise<number>;
  /** Gives the descriptor back, and ends at once what is on its way; idempotent. */
  close(): void;
}

/** Making files: each appears under its name whole, or not at all. */
export interface NewFiles {
  /**
   * Begins a file, and makes the folders above it. Until it is committed its bytes are in another
   * file beside, which also is the lock: nobody else can begin the same file meanwhile.
   *
   * Errors: `already_exists` while somebody else is making it, naming the lock; `permission_denied`;
   * `unimplemented` for storage that is not written to.
   */
  create(path: string): Promise<NewFile>;
  /** Removes a file; one that is not there is no error. Synchronous, for whoever is disposed. */
  remove(path: string): void;
}

/** A file in the making. */
export interface NewFile {
  /** Writes bytes after those written before; they may be changed once it has answered. */
  append(bytes: Uint8Array): void | Promise<void>;
  /** Puts the file under its name, in place of what had it, once its bytes are safe on disk. */
  commit(): Promise<void>;
  /**
   * Gives the file up: nothing of it stays, nor of folders that were made for it and are empty.
   * Synchronous and idempotent. False where there was nothing to give up, because it is in its place.
   */
  abandon(): boolean;
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
  /** Grey, RGB or RGBA; default 3. Alpha that is not asked for is dropped; opaque where there is none. */
  readonly channels?: 1 | 3 | 4;
}

/** Decoding of compressed images, served by the host so that confined functions have it too. */
export interface ImageCodec {
  /**
   * The pixels as a uint8 tensor of shape [height, width, channels]; `data_loss` for a damaged image,
   * `invalid_argument` for a format that is not known.
   */
  decode(bytes: Uint8Array, options?: ImageDecodeOptions): Tensor | Promise<Tensor>;
  /** The size in pixels, read from the header alone. */
  size(bytes: Uint8Array): { width: number; height: number };
}

/** A decoded sound. */
export interface DecodedAudio {
  /** float32 of shape [frames, channels], from -1 to 1. */
  readonly samples: Tensor<"float32">;
  /** Frames per second. */
  readonly sampleRate: number;
}

/** What a mel spectrogram is made of. Lengths are in samples; defaults are those of `tf.signal`. */
export interface MelSpectrogramOptions {
  /** Samples per second. */
  readonly sampleRate: number;
  readonly frameLength: number;
  /** From the beginning of one frame to that of the next. */
  readonly frameStep: number;
  /** A power of two; default: the smallest that holds a frame. */
  readonly fftLength?: number;
  /** Default 20. */
  readonly numMelBins?: number;
  /** Where the lowest bin begins; default 125. */
  readonly lowerEdgeHertz?: number;
  /** Where the highest bin ends, at most half the sample rate; default 3800. */
  readonly upperEdgeHertz?: number;
}

/** Sound, served by the host as images are. */
export interface AudioCodec {
  /** The samples of a WAV file; `data_loss` for a damaged one, `unimplemented` for compressed sound. */
  decodeWav(bytes: Uint8Array): DecodedAudio;
  /**
   * A mel spectrogram as float32 of shape [frames, mel bins], of one channel or the mean of several
   * ([frames, channels]). Magnitudes, not powers, and no logarithm.
   */
  melSpectrogram(samples: Float32Array | Tensor, options: MelSpectrogramOptions): Tensor<"float32">;
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

/** Luck as a name: 16 hexadecimal digits. */
export function hex64(host: Host): string {
  return host.entropy64().toString(16).padStart(16, "0");
}
