/**
 * Measures the cost of checking elements against a declared spec: it compares a pipeline with a spec and
 * without. Elements are plain numbers, which are the cheapest, or rows of a few components, like parsed
 * records.
 */

import { Dataset, type ElementSpec, tensor, TensorSpec } from "../../mod.ts";
import { pipelinedLoad } from "../bare/load.ts";
import type { Bench } from "../lib/bench.ts";

const NUMBERS = 1 << 18;
const ROWS = 1 << 13;
const BATCH_SIZE = 256;
const FEATURES = 64;

const NUMBER_SPEC = new TensorSpec("float64", []);
const ROW_SPEC: ElementSpec = {
  features: new TensorSpec("float32", [FEATURES]),
  label: new TensorSpec("int32", []),
  weight: new TensorSpec("float64", []),
};

function rowOf(label: number) {
  const features = tensor(Float32Array.from({ length: FEATURES }, (_, index) => label + index));
  return { features, label, weight: 1 / (1 + label) };
}

/** Returns a load of whole passes of `count` elements. Its unit is an element. */
function load(fn: (x: number) => unknown, count: number, spec?: ElementSpec) {
  const dataset = Dataset.range(count).map(fn, spec === undefined ? {} : { spec })
    .batch(BATCH_SIZE);
  return pipelinedLoad(1, async () => {
    let batches = 0;
    for await (const _ of dataset) batches++;
    if (batches !== count / BATCH_SIZE) throw new Error(`${batches} batches came out`);
    return count;
  });
}

export const benches: Bench[] = [{
  name: "a declared spec against none: numbers",
  unit: "M elements/s",
  scale: 1e-6,
  floor: 0.9,
  bare: () => load((x) => x / 2, NUMBERS),
  leat: () => load((x) => x / 2, NUMBERS, NUMBER_SPEC),
}, {
  name: "a declared spec against none: rows",
  unit: "M elements/s",
  scale: 1e-6,
  floor: 0.9,
  bare: () => load(rowOf, ROWS),
  leat: () => load(rowOf, ROWS, ROW_SPEC),
}];
