/**
 * Measures the memory of this process. Garbage may stay for many minutes and hide whether V8's heap
 * grows, so it is collected first. This needs `--v8-flags=--expose-gc`.
 */

/** The memory of a process, in bytes. */
export interface MemoryUse {
  readonly pid: number;
  readonly rss: number;
  /** The used heap of the main thread. */
  readonly heapUsed: number;
}

/** Collects garbage, then measures. */
export function memoryNow(): MemoryUse {
  (globalThis as { gc?: () => void }).gc?.();
  const { rss, heapUsed } = Deno.memoryUsage();
  return { pid: Deno.pid, rss, heapUsed };
}
