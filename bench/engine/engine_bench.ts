/** Compares the data engine with a manual loop: range → map → filter → batch(1024) on one core. */

import { Dataset } from "../../mod.ts";
import { BATCH_SIZE, ELEMENTS, keeps, KEPT, open, transform } from "../bare/engine_loop.ts";
import { pipelinedLoad } from "../bare/load.ts";
import type { Bench } from "../lib/bench.ts";

const dataset = Dataset.range(ELEMENTS).map(transform).filter(keeps)
  .batch(BATCH_SIZE);

/** Reads the whole pipeline once, as a training loop does. */
async function pass(): Promise<number> {
  let kept = 0;
  for await (const batch of dataset) kept += batch.size;
  if (kept !== KEPT) throw new Error(`${kept} elements came out, ${KEPT} have to`);
  return ELEMENTS;
}

export const benches: Bench[] = [{
  name: "engine: range, map, filter, batch",
  unit: "M elements/s",
  scale: 1e-6,
  floor: 0.5,
  bare: open,
  leat: () => pipelinedLoad(1, pass),
}];
