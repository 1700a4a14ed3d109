/** Measures the start of a Web Worker that imports nothing, until its first message arrives. */

import { type Load, printMeasured, sequentialLoad } from "./load.ts";

/** Opens the load, whose unit is a thread. */
export function open(): Load {
  return sequentialLoad(async () => {
    const startedMs = performance.now();
    const worker = new Worker(new URL("./thread_start_worker.ts", import.meta.url), {
      type: "module",
    });
    await new Promise((resolve) => worker.onmessage = resolve);
    const tookMs = performance.now() - startedMs;
    worker.terminate();
    return tookMs;
  });
}

if (import.meta.main) await printMeasured("bare thread, started", "threads/s", open);
