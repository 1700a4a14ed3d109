/**
 * Ephemeral data sharing: what each of many trainers gets of a pipeline that is the bottleneck, against
 * what one trainer alone gets of it. Worker and trainers run on threads of this machine: where the
 * pipeline computes, reading for all trainers has to find room beside it on the same cores.
 *
 * @module
 */

import { Dataset, LocalCluster } from "../mod.ts";
import { type Load, pipelinedLoad } from "./bare/load.ts";
import type { Bench } from "./lib/bench.ts";

const BATCH_BYTES = 4_096;

/** Pipelines that make a batch in some 10 ms. */
const PIPELINES = {
  computed: () =>
    endless().map((x, { bytes }) => {
      let value = x;
      for (let i = 0; i < 10_000_000; i++) {
        value = (Math.imul(value, 1_664_525) + 1_013_904_223) | 0;
      }
      return new Uint8Array(bytes).fill(value);
    }, { captures: { bytes: BATCH_BYTES } }),
  // As elements of far storage are.
  "waited for": () =>
    endless().map(async (x, { bytes }) => {
      await Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10).value;
      return new Uint8Array(bytes).fill(x);
    }, { captures: { bytes: BATCH_BYTES } }),
} as const;

function endless(): Dataset<number> {
  return Dataset.range(1_000_000).repeat();
}

/** So many trainers read as fast as they can; the unit is a batch of one of them. */
async function open(pipeline: keyof typeof PIPELINES, trainers: number): Promise<Load> {
  const cluster = await LocalCluster.start({ workers: 1, carrier: "thread" });
  const readers = Array.from({ length: trainers }, (_, index) =>
    PIPELINES[pipeline]().distribute({
      service: cluster,
      jobName: "shared",
      sharing: { trainerId: `${index}` },
      // What was made while nobody measured is soon used up.
      maxOutstandingRequests: 2,
    }).iterator());
  let turn = 0;
  const step = async (): Promise<number> => {
    await readers[turn++ % trainers]!.next();
    return 1 / trainers;
  };
  return pipelinedLoad(trainers, step, async () => {
    await Promise.all(readers.map((reader) => reader.return()));
    await cluster.close();
  });
}

const CASES = [["computed", 16], ["waited for", 16], ["waited for", 64]] as const;

export const benches: Bench[] = CASES.map(([pipeline, trainers]) => ({
  name: `sharing: each of ${trainers} trainers over one, batches ${pipeline}`,
  unit: "batches/s",
  floor: 0.95,
  bare: () => open(pipeline, 1),
  leat: () => open(pipeline, trainers),
}));
