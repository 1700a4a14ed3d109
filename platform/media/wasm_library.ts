/** Image libraries that are compiled to WebAssembly, and the limit of their memory. */

import { LeatError } from "../../core/error.ts";
import type { DecodePlan } from "./decode_plan.ts";
import {
  type Channels,
  type Decoded,
  type ImageFormat,
  importLibrary,
  type PixelSize,
} from "./image_format.ts";

/** Instances up to this size are kept between calls; WebAssembly memory never shrinks. */
const WASM_BYTES_KEPT_MAX = 64 * 1024 * 1024;

/** The exports of every library of this kind. */
interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  malloc(byteLength: number): number;
  free(pointer: number): void;
}

/**
 * One library. An instance that traps, or has grown large, is dropped; the next call makes another.
 */
export class WasmLibrary<E> {
  readonly #module: object;
  readonly #imports: Record<string, Record<string, () => never>>;
  #exports: (Exports & E) | undefined;

  constructor(module: object, imports: Record<string, Record<string, () => never>> = {}) {
    this.#module = module;
    this.#imports = imports;
  }

  /** Calls `fn` and returns its result. `fn` frees what it allocates, unless it throws. */
  call<T>(fn: (library: E, memory: WasmMemory) => T): T {
    const exports = this.#exports ?? this.#instance();
    // Restored on success only: an instance that has trapped may be in any state.
    this.#exports = undefined;
    const result = fn(exports, new WasmMemory(exports));
    if (exports.memory.buffer.byteLength <= WASM_BYTES_KEPT_MAX) this.#exports = exports;
    return result;
  }

  #instance(): Exports & E {
    const { Instance } = globalThis.WebAssembly;
    const module = this.#module as ConstructorParameters<typeof Instance>[0];
    return new Instance(module, this.#imports).exports as unknown as Exports & E;
  }
}

/** A format whose library decodes whole images to RGBA bytes, on this thread. */
export abstract class WasmFormat<E> implements ImageFormat {
  abstract readonly name: string;
  #library: WasmLibrary<E> | undefined;

  abstract matches(bytes: Uint8Array): boolean;
  abstract readSize(bytes: Uint8Array): PixelSize;
  abstract bytesToDecode(bytes: Uint8Array): number;

  load(): Promise<void> | undefined {
    return this.#library === undefined ? this.#load() : undefined;
  }

  decode(bytes: Uint8Array, { channels }: DecodePlan): Decoded {
    const { width, height } = this.readSize(bytes);
    return {
      region: { x: 0, y: 0, width, height },
      read: (into) => this.decodeInto(this.#library!, bytes, into, channels),
      [Symbol.dispose]: () => {},
    };
  }

  protected abstract readonly packageName: string;

  protected abstract importLibrary(): Promise<WasmLibrary<E>>;

  protected abstract decodeInto(
    library: WasmLibrary<E>,
    bytes: Uint8Array,
    into: Uint8Array,
    channels: Channels,
  ): void;

  async #load(): Promise<void> {
    this.#library = await importLibrary(
      this.packageName,
      () => this.importLibrary(),
      "run with --allow-read of Deno's npm cache (deno info shows where)",
      "it is an npm package of WebAssembly",
    );
  }
}

export function outOfMemory(byteLength: number): LeatError {
  return new LeatError(
    "resource_exhausted",
    `There is no memory to decode an image: ${byteLength} bytes are needed`,
  );
}

/** WebAssembly returns signed integers: addresses from 2 GiB would be negative. */
function addressOf(pointer: number): number {
  return pointer >>> 0;
}

/** The memory of a library, for one call. */
class WasmMemory {
  readonly #exports: Exports;

  constructor(exports: Exports) {
    this.#exports = exports;
  }

  /** @throws {LeatError} `resource_exhausted` if there is no memory. */
  allocate(byteLength: number): number {
    const pointer = addressOf(this.#exports.malloc(byteLength));
    if (pointer !== 0) return pointer;
    throw outOfMemory(byteLength);
  }

  free(pointer: number): void {
    this.#exports.free(pointer);
  }

  /** A view of the memory, valid until the next allocation. */
  view(pointer: number, byteLength: number): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#exports.memory.buffer, addressOf(pointer), byteLength);
  }

  integers(pointer: number, count: number): number[] {
    return [...new Uint32Array(this.#exports.memory.buffer, pointer, count)];
  }
}
