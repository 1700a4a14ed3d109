/**
 * Compares functions of `map` on other threads with the same pipeline without threads. The first rows
 * need as many idle cores as there are threads. The last row shows what the default costs short
 * functions.
 */
import { AUTOTUNE, Dataset, type DatasetOptions } from "../../mod.ts";
import { type Load, pipelinedLoad } from "../bare/load.ts";
import type { Bench } from "../lib/bench.ts";

/** A round takes 4 to 9 ns, depending on the processor. */
function work(x: number, { rounds }: { readonly rounds: number }): number {
  for (let i = 0; i < rounds; i++) x = Math.sqrt(x * x + i);
  return x;
}

/** Normalises an image of 224 × 224 pixels, as a user's own kernel would. */
function normalise(pixels: Uint8Array, { rounds }: { readonly rounds: number }): Float32Array {
  const values = new Float32Array(pixels.length);
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < pixels.length; i++) values[i] = (pixels[i]! / 255 - 0.5) / 0.25 + round;
  }
  return values;
}

function open(dataset: Dataset<unknown>, options: DatasetOptions): Load {
  const iterator = dataset.withOptions(options).iterator();
  const step = async () => {
    await iterator.next();
    return 1;
  };
  return pipelinedLoad(1, step, async () => void await iterator.return());
}

function numbers(rounds: number): Dataset<unknown> {
  return Dataset.counter().map(work, { numParallelCalls: AUTOTUNE, captures: { rounds } });
}

function images(rounds: number): Dataset<unknown> {
  return Dataset.from([new Uint8Array(224 * 224 * 3).fill(7)]).repeat()
    .map(normalise, { numParallelCalls: AUTOTUNE, captures: { rounds } });
}

function against(name: string, floor: number, dataset: () => Dataset<unknown>): Bench {
  return {
    name: `functions: ${name}, with threads against without`,
    unit: "elements/s",
    floor,
    bare: () => open(dataset(), { threads: false }),
    leat: () => open(dataset(), {}),
  };
}

const MANY = navigator.hardwareConcurrency > 1 ? 1.5 : 0.9;

export const benches: Bench[] = [
  against("0.1 ms a call", MANY, () => numbers(25_000)),
  against("1 ms a call", MANY, () => numbers(250_000)),
  against("images of 150 KB, 5 ms a call", MANY, () => images(20)),
  against("a few ns a call", 0.9, () => numbers(1)),
];
