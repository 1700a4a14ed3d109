/**
 * The host: everything that a pipeline needs from the machine it runs on, as one interface.
 *
 * Nothing in `data` reads a clock, draws entropy, opens a file or loads a module directly: it calls its
 * host. Threads, confined processes and the simulator each implement one.
 */
import { hexOf64 } from "../core/bytes.ts";
import { LeatError } from "../core/error.ts";
import type { DTypeArrays, FixedDType } from "../core/dtype.ts";
import type { Tensor } from "../core/tensor.ts";
import type { ReadingTask } from "./service/reading_task.ts";
import type { ForeignRunners } from "./foreign/foreign_runners.ts";
import type { FunctionThreads } from "./threads/function_threads.ts";

/** What a pipeline needs from the machine it runs on. */
export interface Host {
  /** A monotonic clock in milliseconds, from an arbitrary origin. */
  nowMs(): number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason if it is aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Resolves in a later macrotask, so that timers and sockets run in between. */
  yield(): Promise<void>;
  /** 64 unpredictable bits. An iteration without a seed draws its seed from them. */
  entropy64(): bigint;
  /** Reads files. */
  readonly files: Files;
  /** Writes files. */
  readonly newFiles: NewFiles;
  /** Decodes images. */
  readonly images: ImageCodec;
  /** Decodes sound. */
  readonly audio: AudioCodec;
  /** Imports an ECMAScript module, for user functions sent by reference. */
  importModule(url: string): Promise<Record<string, unknown>>;
  /** Evaluates a user function sent as text. Default: in the global scope of this thread. */
  evaluate?(script: string): unknown;
  /**
   * Whether all of a foreign pipeline may run here, because this process was started for it, as a
   * worker's runner is. Default: false. See `data/foreign/foreign.ts`.
   *
   * @ignore
   */
  readonly runsForeign?: boolean;
  /**
   * Runs foreign functions in another process. Without it they are refused.
   *
   * @ignore
   */
  readonly foreignRunners?: ForeignRunners;
  /**
   * Calls Python functions. Without it they are refused.
   *
   * @ignore
   */
  readonly python?: PythonRunner | undefined;
  /**
   * Threads that call user functions. Without them the thread of the pipeline does.
   *
   * @ignore
   */
  readonly threads?: FunctionThreads | undefined;
  /**
   * Whether batches of images are made in memory that threads share, so that the thread that decodes
   * an image writes it there. Default: false, because shared memory cannot be transferred or freed.
   *
   * @ignore
   */
  readonly sharesBatches?: boolean | undefined;
  /**
   * The task whose pipeline runs here. Left out: it runs for no task of a worker.
   *
   * @ignore
   */
  readonly forTask?: ReadingTask | undefined;
  /** Logs a warning for the operator of the machine. */
  warn(message: string): void;
}

/** A function of a Python file, with its keyword arguments. */
export interface PythonCallee {
  readonly file: string;
  readonly name: string;
  readonly captures?: Readonly<Record<string, unknown>>;
}

/** Calls Python functions. */
export interface PythonRunner {
  /**
   * @param callee Calls with the same object may be sent to Python together.
   * @param args Plain data and tensors.
   * @param seed The seed of the random numbers of this call.
   * @throws {LeatError} What the function raised, with its traceback.
   */
  call(callee: PythonCallee, args: readonly unknown[], seed: number): Promise<unknown>;
}

/** The `firstBytes` of a reader that needs only a file's size. Some servers misread the range 0-0. */
export const FIRST_BYTES_FOR_SIZE = 1024;

/** Read-only access to files, by whatever names the implementation understands. */
export interface Files {
  /**
   * Opens a file for reading, or rejects with `not_found` or `permission_denied`. Remote storage,
   * which may be slow, rejects with `cancelled` once `signal` is aborted.
   *
   * @param firstBytes How many bytes remote storage requests from the file's beginning at once, if its
   * default would be too much: the reader needs only the size, or reads here and there.
   */
  open(path: string, signal?: AbortSignal, firstBytes?: number): Promise<OpenFile>;
  /**
   * The files matching a glob pattern, sorted by name; empty when none match. Names begin as the
   * pattern does, up to the folder of its first wildcard. `signal` as for `open`.
   */
  list(pattern: string, signal?: AbortSignal): Promise<string[]>;
}

/** Returns a glob pattern that matches only `path`. */
export function escapeGlob(path: string): string {
  return path.replace(/[\\*?[\]{},]/g, "\\$&");
}

/** An open file. It holds a descriptor or a connection until `close()`. */
export interface OpenFile {
  /** The size of the file, in bytes. */
  readonly sizeBytes: number;
  /** What the storage calls these contents, such as an ETag. Left out: it gives them no name. */
  readonly tag?: string | undefined;
  /**
   * Reads at most `into.byteLength` bytes at `offset` and returns their number; 0 at the end. Returns
   * synchronously if the implementation has the bytes in memory.
   */
  read(into: Uint8Array, offset: number): number | Promise<number>;
  /**
   * Tells that the bytes from `start` up to `stop` will be read in order. May be called for several
   * ranges, which are read in turn. Remote storage then reads these ahead, and nothing else.
   */
  expect?(start: number, stop: number): void;
  /** Closes the descriptor, and cancels reads in flight; idempotent. */
  close(): void;
}

/** Creates files. A file appears under its name when it is complete, or not at all. */
export interface NewFiles {
  /**
   * Begins a file, and makes its parent folders. Until `commit()` its bytes are in a temporary file
   * next to it. The temporary file is also a lock: only one writer can make a file at a time.
   *
   * Errors: `already_exists` while another writer makes the file, naming the lock;
   * `permission_denied`; `unimplemented` for read-only storage.
   */
  create(path: string): Promise<NewFile>;
  /** Removes a file, if it exists. Synchronous, so that `dispose()` can call it. */
  remove(path: string): void;
}

/** A file being written. */
export interface NewFile {
  /** Appends bytes. The caller may change `bytes` after the call has returned or its promise resolved. */
  append(bytes: Uint8Array): void | Promise<void>;
  /** Gives the file its name, once its bytes are safe on disk; replaces an older file. */
  commit(): Promise<void>;
  /**
   * Discards the file, and empty folders that were made for it. Returns false if the file was
   * committed already. Synchronous and idempotent.
   */
  abandon(): boolean;
}

/** Means and standard deviations of channels, whose values are from 0 to 1. */
export interface Normalization {
  /** One number for all channels, or one for each. */
  readonly mean: number | readonly number[];
  /** Not 0. One number for all channels, or one for each. */
  readonly std: number | readonly number[];
}

/** The order of an image's axes: height, width, channels; or channels, height, width. */
export type ImageLayout = "HWC" | "CHW";

/** How an image is transformed, in one pass: crop, then resize, then flip, then convert. */
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
  /** Grey, RGB or RGBA; default 3. Alpha is dropped with 1 and 3; with 4, missing alpha is opaque. */
  readonly channels?: 1 | 3 | 4;
  /**
   * `uint8` has values from 0 to 255. Floats have values from 0 to 1, and resized ones are not
   * rounded. Default: `uint8`, or `float32` with `normalize`.
   */
  readonly dtype?: "uint8" | "float16" | "float32";
  /** Makes each value `(value - mean) / std`, like torchvision's `Normalize`. */
  readonly normalize?: Normalization;
  /** Default `"HWC"`. */
  readonly layout?: ImageLayout;
  /**
   * How JPEGs are decoded, as in `tf.io.decode_jpeg`. `"INTEGER_ACCURATE"` gives the pixels of Pillow
   * and torchvision; `"INTEGER_FAST"` those of TensorFlow's default, which differ by a few units.
   * Default: accurate on Linux, fast on other systems, which have nothing else. Other formats ignore it.
   */
  readonly dctMethod?: DctMethod;
}

/** How the discrete cosine transform of a JPEG is computed. */
export type DctMethod = "INTEGER_ACCURATE" | "INTEGER_FAST";

/** Provides memory, with any contents, for `length` values; undefined if there is none. */
export type PlaceOf = <D extends FixedDType>(
  dtype: D,
  length: number,
) => DTypeArrays[D] | undefined;

/** Decodes compressed images. The host provides it, so that confined functions have it too. */
export interface ImageCodec {
  /**
   * The pixels as a tensor of shape [height, width, channels], uint8 unless the options say
   * otherwise; `data_loss` for a damaged image, `invalid_argument` for an unknown format or option.
   *
   * @param placeOf Provides memory for the pixels; called once their dtype and number are known.
   */
  decode(
    bytes: Uint8Array,
    options?: ImageDecodeOptions,
    placeOf?: PlaceOf,
  ): Tensor | Promise<Tensor>;
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

/** The options of a mel spectrogram. Lengths are in samples; defaults are those of `tf.signal`. */
export interface MelSpectrogramOptions {
  /** Samples per second. */
  readonly sampleRate: number;
  /** The length of a frame. */
  readonly frameLength: number;
  /** The distance between the starts of two frames. */
  readonly frameStep: number;
  /** A power of two; default: the smallest that is at least the frame length. */
  readonly fftLength?: number;
  /** Default 20. */
  readonly numMelBins?: number;
  /** The lower edge of the lowest bin; default 125. */
  readonly lowerEdgeHertz?: number;
  /** The upper edge of the highest bin, at most half the sample rate; default 3800. */
  readonly upperEdgeHertz?: number;
}

/** Sound processing. The host provides it, so that confined functions have it too. */
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

/** Sets the host of iterators that are opened without one. A program's entry module calls it once. */
export function installHost(host: Host): void {
  installed = host;
}

/** The installed host. Throws `failed_precondition` if no entry module has installed one. */
export function installedHost(): Host {
  if (installed === undefined) {
    throw new LeatError(
      "failed_precondition",
      "No host is installed: import Dataset from mod.ts, or call installHost() before iterating.",
    );
  }
  return installed;
}

/** Runs `make` with another installed host, for the iterators that it opens. */
export function withHost<T>(host: Host, make: () => T): T {
  const before = installed;
  installed = host;
  try {
    return make();
  } finally {
    installed = before;
  }
}

/** 64 random bits as 16 hexadecimal digits. */
export function hex64(host: Host): string {
  return hexOf64(host.entropy64());
}
