/**
 * Node modules that are loaded on first use. One of them, with its dependencies, loads as slowly as a
 * hundred of Leat's modules, and each thread loads its own copy. They load synchronously, because the
 * simulator cannot wait for an `import()`.
 */

interface Builtins {
  readonly "node:crypto": typeof import("node:crypto");
  readonly "node:zlib": typeof import("node:zlib");
}

const loaded = new Map<string, unknown>();

/** Loads `node:crypto` on first use. */
export function nodeCrypto(): Builtins["node:crypto"] {
  return builtin("node:crypto");
}

/** Loads `node:zlib` on first use. */
export function nodeZlib(): Builtins["node:zlib"] {
  return builtin("node:zlib");
}

/** What `zlib`'s functions that decompress at once call, in Node and in Deno. */
interface Decoder {
  /** The bytes that it has read. */
  readonly bytesWritten: number;
  _processChunk(bytes: Uint8Array, flush: number): Uint8Array<ArrayBuffer>;
}

/**
 * Decompresses zstd like `zstdDecompressSync`, which in Deno never frees the decoder of damaged data:
 * some 100 KB each time. Refuses bytes after the end, which that function ignores after short data.
 */
export function zstdDecompressed(
  bytes: Uint8Array,
  options: { readonly chunkSize: number; readonly maxOutputLength: number },
): Uint8Array<ArrayBuffer> {
  const { createZstdDecompress, constants } = nodeZlib();
  const stream = createZstdDecompress(options);
  const decoder = stream as unknown as Decoder;
  try {
    const content = decoder._processChunk(bytes, constants.ZSTD_e_end);
    if (decoder.bytesWritten === bytes.length) return content;
    throw new Error("it has bytes after its end");
  } catch (error) {
    stream.close();
    throw error;
  }
}

function builtin<Name extends keyof Builtins>(name: Name): Builtins[Name] {
  let found = loaded.get(name);
  if (found === undefined) loaded.set(name, found = globalThis.process.getBuiltinModule(name));
  return found as Builtins[Name];
}
