/** Starting a Web Worker that imports nothing, until its first message is here. */

import { type Load, printMeasured, sequentialLoad } from "./load.ts";

/** The load; its unit is a thread. */
export function open(): Load {
  return sequentialLoad(async () => {
    const began = performance.now();
    const worker = new Worker(new URL("./thread_start_worker.ts", import.meta.url), {
      type: "module",
    });
    await new Promise((resolve) => worker.onmessage = resolve);
    const tookMs = performance.now() - began;
    worker.terminate();
    return tookMs;
  });
}

if (import.meta.main) await printMeasured("bare thread, started", "threads/s", open);
