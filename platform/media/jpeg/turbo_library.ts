/**
 * libjpeg-turbo's own shared library, opened with `Deno.dlopen`. Linux packages of
 * `@julusian/jpeg-turbo` contain it next to their addon.
 */

import { fileURLToPath } from "node:url";
import { LeatError } from "../../../core/error.ts";

/** The prebuilt library of each processor. */
const PREBUILDS: Readonly<Record<string, string>> = {
  x86_64: "jpeg-turbo-linux-x64",
  aarch64: "jpeg-turbo-linux-arm64",
};

/** `RTLD_NOW | RTLD_NODELETE` of Linux. */
const STAY_LOADED = 0x1002;

const RECTANGLE = { struct: ["i32", "i32", "i32", "i32"] } as const;

/** Pixels go to native memory, because a JavaScript buffer is freed when its thread is ended. */
const DECOMPRESS = [
  ...["u64", "u64", "usize"] as const, // handle, JPEG and its length
  ...["u64", "i32", "i32"] as const, // pixels, bytes of a row, format
] as const;

/**
 * Addresses are numbers: pointers of `Deno.UnsafePointer` need permission for all libraries.
 * `dlopen`, `memcpy` and `strlen` are found because the library depends on the C library.
 */
const SYMBOLS = {
  dlopen: { parameters: ["buffer", "i32"], result: "u64" },
  copyIn: { name: "memcpy", parameters: ["u64", "buffer", "usize"], result: "void" },
  copyOut: { name: "memcpy", parameters: ["buffer", "u64", "usize"], result: "void" },
  strlen: { parameters: ["u64"], result: "usize" },
  tj3Init: { parameters: ["i32"], result: "u64" },
  tj3Destroy: { parameters: ["u64"], result: "void" },
  tj3Set: { parameters: ["u64", "i32", "i32"], result: "i32" },
  tj3Get: { parameters: ["u64", "i32"], result: "i32" },
  tj3GetErrorStr: { parameters: ["u64"], result: "u64" },
  tj3Alloc: { parameters: ["usize"], result: "u64" },
  tj3Free: { parameters: ["u64"], result: "void" },
  tj3DecompressHeader: { parameters: ["u64", "u64", "usize"], result: "i32" },
  tj3SetCroppingRegion: { parameters: ["u64", RECTANGLE], result: "i32" },
  tj3Decompress8: { parameters: DECOMPRESS, result: "i32" },
  tj3Compress8: {
    // handle; pixels, width, bytes of a row, height, format; addresses of the JPEG and its length
    parameters: ["u64", "buffer", "i32", "i32", "i32", "i32", "buffer", "buffer"],
    result: "i32",
  },
} as const satisfies Deno.ForeignLibraryInterface;

const ASYNC_SYMBOLS = {
  tj3Decompress8: { parameters: DECOMPRESS, result: "i32", nonblocking: true },
} as const satisfies Deno.ForeignLibraryInterface;

type Symbols = Deno.DynamicLibrary<typeof SYMBOLS>["symbols"];

/** The library, in memory until the process ends. */
export class TurboLibrary {
  /** Its functions, on the calling thread. */
  readonly symbols: Symbols;
  readonly #path: string;
  #asyncLibrary: Deno.DynamicLibrary<typeof ASYNC_SYMBOLS> | undefined;
  #users = 0;

  /** Opens the library. Throws as `Deno.dlopen` does. */
  constructor(path: string) {
    this.#path = path;
    const library = Deno.dlopen(path, SYMBOLS);
    // The library stays loaded, so its functions work after `close()`. If it stayed open instead, users'
    // tests would report a leak, and a thread that ends would unload it while calls still run.
    library.symbols.dlopen(new TextEncoder().encode(`${path}\0`), STAY_LOADED);
    library.close();
    this.symbols = library.symbols;
  }

  /** Keeps the library open for calls on other threads, until `release()`. */
  hold(): void {
    this.#users++;
  }

  release(): void {
    if (--this.#users > 0) return;
    this.#asyncLibrary?.close();
    this.#asyncLibrary = undefined;
  }

  /** Decompresses on another thread. The library must be held. */
  decompressAsync(...args: Parameters<Symbols["tj3Decompress8"]>): Promise<number> {
    this.#asyncLibrary ??= Deno.dlopen(this.#path, ASYNC_SYMBOLS);
    return this.#asyncLibrary.symbols.tj3Decompress8(...args);
  }

  /** Why the last call with this handle, on the calling thread, failed. */
  errorOf(handle: bigint): Error {
    const text = this.symbols.tj3GetErrorStr(handle);
    const byteLength = this.symbols.strlen(text);
    const bytes = new Uint8Array(Number(byteLength));
    this.symbols.copyOut(bytes, text, byteLength);
    return new Error(new TextDecoder().decode(bytes));
  }
}

/** The path of the library on this machine; undefined where there is only the addon. */
export function turboLibraryPath(): string | undefined {
  const { os, arch, target } = Deno.build;
  const prebuild = os === "linux" ? PREBUILDS[arch] : undefined;
  if (prebuild === undefined || (target.endsWith("musl") && arch !== "x86_64")) return undefined;
  const folder = `prebuilds/${prebuild}${target.endsWith("musl") ? "-musl" : ""}/`;
  const module = import.meta.resolve("@julusian/jpeg-turbo");
  if (!module.startsWith("file:")) return undefined;
  return fileURLToPath(new URL(`${folder}libturbojpeg.so.0`, module));
}

/**
 * Opens the library; undefined where there is none.
 * @throws {LeatError} `permission_denied` without the permission for this file.
 */
export function openTurboLibrary(): TurboLibrary | undefined {
  const path = turboLibraryPath();
  if (path === undefined) return undefined;
  try {
    return new TurboLibrary(path);
  } catch (cause) {
    const { code, message } = LeatError.from(cause, "failed_precondition");
    if (code !== "permission_denied") return undefined;
    throw new LeatError(
      code,
      `Cannot load libjpeg-turbo, which decodes JPEGs: ${message}; run with --allow-ffi=${path}.`,
      { cause },
    );
  }
}
