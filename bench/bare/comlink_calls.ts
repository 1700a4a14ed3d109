/** Measures small comlink calls to a Web Worker, eight in flight. */

import { releaseProxy, wrap } from "comlink";
import { type Load, pipelinedLoad, printMeasured } from "./load.ts";

export const IN_FLIGHT = 8;

/** Opens the load, whose unit is a call. */
export function open(): Load {
  const worker = new Worker(new URL("./comlink_calls_worker.ts", import.meta.url), {
    type: "module",
  });
  const remote = wrap<(value: number) => number>(worker);
  let calls = 0;
  const call = async (): Promise<number> => {
    const value = calls++;
    const answer = await remote(value);
    if (answer !== value + 1) throw new Error(`${value} was answered with ${answer}`);
    return 1;
  };
  return pipelinedLoad(IN_FLIGHT, call, () => {
    remote[releaseProxy]();
    worker.terminate();
  });
}

if (import.meta.main) await printMeasured("bare comlink, small calls", "calls/s", open);
