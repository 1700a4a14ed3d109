/**
 * Libraries that decode images, compiled to WebAssembly: their memory, and what is done when it has grown.
 */

import { LeatError } from "../core/error.ts";

/** Memory of WebAssembly never shrinks. That of an instance is kept between calls up to this size. */
export const WASM_BYTES_KEPT_MAX = 64 * 1024 * 1024;

/** What every library of this kind exports. */
interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  malloc(byteLength: number): number;
  free(pointer: number): void;
}

/**
 * One library, called on the calling thread. A call that traps, or leaves much memory behind, is the instance's last: the next one is
 * made by another.
 */
export class WasmLibrary<E> {
  readonly #module: object;
  readonly #imports: Record<string, Record<string, () => never>>;
  #exports: (Exports & E) | undefined;

  constructor(module: object, imports: Record<string, Record<string, () => never>> = {}) {
    this.#module = module;
    this.#imports = imports;
  }

  /** Bytes of memory that are kept now. */
  get bytesKept(): number {
    return this.#exports?.memory.buffer.byteLength ?? 0;
  }

  /** What `fn` returns. It frees what it allocates, unless it throws. */
  call<T>(fn: (library: E, memory: WasmMemory) => T): T {
    const exports = this.#exports ?? this.#instance();
    // Until all has gone well: an instance that has trapped may be in any state.
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

/** The memory of a library, for one call. */
export class WasmMemory {
  readonly #exports: Exports;

  constructor(exports: Exports) {
    this.#exports = exports;
  }

  /** @throws {LeatError} `resource_exhausted` where there is no memory. */
  allocate(byteLength: number): number {
    const pointer = this.#exports.malloc(byteLength);
    if (pointer !== 0) return pointer;
    throw new LeatError(
      "resource_exhausted",
      `There is no memory to decode an image: ${byteLength} bytes were asked for`,
    );
  }

  free(pointer: number): void {
    this.#exports.free(pointer);
  }

  /** A view of the memory, until something is allocated. */
  view(pointer: number, byteLength: number): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#exports.memory.buffer, pointer, byteLength);
  }

  /** `count` 32-bit integers. */
  integers(pointer: number, count: number): number[] {
    return [...new Uint32Array(this.#exports.memory.buffer, pointer, count)];
  }
}
