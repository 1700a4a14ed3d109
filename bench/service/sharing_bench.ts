/**
 * Measures ephemeral data sharing when the pipeline is the bottleneck: compares the rate of each of many
 * trainers with that of a single trainer. Worker and trainers run on threads of this machine, so a
 * pipeline that computes competes with the trainers for the same cores.
 */

import { Dataset, LocalCluster } from "../../mod.ts";
import { type Load, pipelinedLoad } from "../bare/load.ts";
import type { Bench } from "../lib/bench.ts";

const BATCH_BYTES = 4_096;

/** Pipelines that produce a batch in about 10 ms. */
const PIPELINES = {
  computed: () =>
    endless().map((x, { bytes }) => {
      let value = x;
      for (let i = 0; i < 10_000_000; i++) {
        value = (Math.imul(value, 1_664_525) + 1_013_904_223) | 0;
      }
      return new Uint8Array(bytes).fill(value);
    }, { captures: { bytes: BATCH_BYTES } }),
  // Elements wait as if they came from far storage.
  "waited for": () =>
    endless().map(async (x, { bytes }) => {
      await Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10).value;
      return new Uint8Array(bytes).fill(x);
    }, { captures: { bytes: BATCH_BYTES } }),
} as const;

function endless(): Dataset<number> {
  return Dataset.range(1_000_000).repeat();
}

/** Opens a load of trainers that read as fast as they can. The unit is a batch of one trainer. */
async function open(pipeline: keyof typeof PIPELINES, trainers: number): Promise<Load> {
  const cluster = await LocalCluster.start({ workers: 1, carrier: "thread" });
  const readers = Array.from({ length: trainers }, (_, index) =>
    PIPELINES[pipeline]().distribute({
      service: cluster,
      jobName: "shared",
      sharing: { trainerId: `${index}` },
      // Few, so that batches that were prefetched between measurements are soon used up.
      maxOutstandingRequests: 2,
    }).iterator());
  let next = 0;
  const step = async (): Promise<number> => {
    await readers[next++ % trainers]!.next();
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
