/**
 * Compares DETERMINISTIC with DYNAMIC: what an order that is the same for any cluster costs. Both read
 * the same pipelines through clusters of threads. Workers and trainer share this machine's cores. The
 * bench prints how much the reader buffered, and how long it waited for one split while others were
 * available.
 */

import { Dataset, LocalCluster, type ShardingPolicy, type Tensor } from "../../mod.ts";
import { type Load, pipelinedLoad } from "../bare/load.ts";
import type { Bench } from "../lib/bench.ts";

const WORKERS = 2;
const ROWS_PER_BATCH = 32;
/** How often the reader's statistics are sampled, in ms. */
const SAMPLE_MS = 100;

/** Returns a dataset whose elements each take about 20 µs of arithmetic. */
function computed(elements: number): Dataset<number> {
  return Dataset.range(elements).map((x) => {
    let value = x;
    for (let i = 0; i < 20_000; i++) value = (Math.imul(value, 1_664_525) + 1_013_904_223) | 0;
    return value;
  });
}

/** An epoch of each takes about a second, so that the start of a job matters little. */
const PIPELINES: Readonly<Record<string, () => Dataset<unknown>>> = {
  "light maps, batches of 32": () => computed(64_000).batch(ROWS_PER_BATCH),
  // Every split ends with an incomplete batch, whose rows the reader joins with others.
  "light maps and a filter, batches of 32": () =>
    computed(64_000).filter((x) => x % 7 !== 0).batch(ROWS_PER_BATCH),
  // Batches cost almost nothing to produce, so their transport dominates.
  "batches of 512 KB": () =>
    Dataset.range(64_000).map((_, { row }) => row, {
      captures: { row: new Float64Array(2_048) },
    }).batch(ROWS_PER_BATCH),
  // Elements wait as if they came from far storage.
  "elements waited for, 8 at a time": () =>
    Dataset.range(8_000).map(async (x) => {
      await Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2).value;
      return x;
    }, { numParallelCalls: 8 }).batch(ROWS_PER_BATCH),
};

/**
 * Opens the load, whose unit is an element. A step is a whole epoch, so that nothing is prefetched
 * between measurements.
 */
async function open(
  name: string,
  pipeline: () => Dataset<unknown>,
  processingMode: ShardingPolicy,
): Promise<Load> {
  const cluster = await LocalCluster.start({ workers: WORKERS, carrier: "thread" });
  const batches = pipeline().distribute({ service: cluster, processingMode });
  const figures = new ReaderFigures(cluster);
  const epoch = async (): Promise<number> => {
    let elements = 0;
    for await (const batch of batches) elements += (batch as Tensor).shape[0]!;
    return elements;
  };
  return pipelinedLoad(1, epoch, async () => {
    figures.stop();
    await cluster.close();
    if (processingMode === "DETERMINISTIC") console.error(`${name}: ${figures.text}`);
  });
}

/** Samples the reader's statistics that the dispatcher has. */
class ReaderFigures {
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #waits = new Map<number, { waitingMs: number; headOfLineMs: number }>();
  #bufferedBytesMax = 0;

  constructor(cluster: LocalCluster) {
    this.#timer = setInterval(async () => {
      const { jobs } = await cluster.describe().catch(() => ({ jobs: [] }));
      const readers = jobs.flatMap((job) => job.iterations.flatMap((at) => at.readers));
      for (const { clientId, figures } of readers) {
        if (figures === null) continue;
        const { waitingMs, headOfLineMs = 0, bufferedBytes } = figures;
        this.#waits.set(clientId, { waitingMs, headOfLineMs });
        this.#bufferedBytesMax = Math.max(this.#bufferedBytesMax, bufferedBytes);
      }
    }, SAMPLE_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  get text(): string {
    const sum = (valueOf: (waits: { waitingMs: number; headOfLineMs: number }) => number) =>
      [...this.#waits.values()].reduce((total, waits) => total + valueOf(waits), 0);
    const [waitedMs, blockedMs] = [sum((at) => at.waitingMs), sum((at) => at.headOfLineMs)];
    return `its reader waited ${(waitedMs / 1_000).toFixed(1)} s, ` +
      `${(blockedMs / 1_000).toFixed(1)} s of it for one split while others were available, and ` +
      `buffered at most ${(this.#bufferedBytesMax / 2 ** 20).toFixed(1)} MiB`;
  }
}

export const benches: Bench[] = Object.entries(PIPELINES).map(([name, pipeline]) => ({
  name: `DETERMINISTIC over DYNAMIC, ${name}`,
  unit: "elements/s",
  floor: 0.9,
  bare: () => open(name, pipeline, "DYNAMIC"),
  leat: () => open(name, pipeline, "DETERMINISTIC"),
}));
