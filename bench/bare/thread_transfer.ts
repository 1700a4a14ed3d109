/**
 * Measures 1 MB buffers that the main thread requests from a Web Worker, eight in flight. They are
 * transferred, or copied by structured clone.
 */

import { type Load, pipelinedLoad, printMeasured } from "./load.ts";

export const BUFFER_BYTES = 1_000_000;
export const IN_FLIGHT = 8;

/** How a buffer is sent from one thread to another. */
export type Passage = "transfer" | "copy";

/** Opens the load, whose unit is 10⁶ bytes. */
export function open(passage: Passage): Load {
  const worker = new Worker(new URL("./thread_transfer_worker.ts", import.meta.url), {
    type: "module",
    name: passage,
  });
  const waiting: ((bytes: Uint8Array) => void)[] = [];
  worker.onmessage = ({ data }) => waiting.shift()?.(data);
  let received = 0;
  const pull = async (): Promise<number> => {
    const answer = new Promise<Uint8Array>((resolve) => waiting.push(resolve));
    worker.postMessage(BUFFER_BYTES);
    const bytes = await answer;
    if (bytes.length !== BUFFER_BYTES || bytes[0] !== (received++ & 0xff)) {
      throw new Error(`buffer ${received} arrived damaged`);
    }
    return bytes.length / 1e6;
  };
  return pipelinedLoad(IN_FLIGHT, pull, () => worker.terminate());
}

if (import.meta.main) {
  for (const passage of ["transfer", "copy"] as const) {
    await printMeasured(`bare thread, 1 MB, ${passage}`, "MB/s", () => open(passage));
  }
}
