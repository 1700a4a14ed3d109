/**
 * The memory of this process. Garbage may stay for many minutes, and would hide whether V8's heap
 * grows, so it is collected first (`--v8-flags=--expose-gc`).
 */

/** In bytes. */
export interface MemoryUse {
  readonly rss: number;
  /** Of the main thread. */
  readonly heapUsed: number;
}

/** Collects garbage, then measures. */
export function memoryNow(): MemoryUse {
  (globalThis as { gc?: () => void }).gc?.();
  const { rss, heapUsed } = Deno.memoryUsage();
  return { rss, heapUsed };
}
