/**
 * The memory of this process. Of V8's heap only what is in use tells whether it grows: what is garbage
 * may lie there for many minutes, so it is collected first (`--v8-flags=--expose-gc`).
 *
 * @module
 */

/** In bytes. */
export interface MemoryUse {
  readonly rss: number;
  /** Of the main thread. */
  readonly heapUsed: number;
}

/** See the module. */
export function memoryNow(): MemoryUse {
  (globalThis as { gc?: () => void }).gc?.();
  const { rss, heapUsed } = Deno.memoryUsage();
  return { rss, heapUsed };
}
