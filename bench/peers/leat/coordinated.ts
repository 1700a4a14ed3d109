/**
 * Trains synchronously on texts of uneven length, as in section 4.4 of the tf.data service paper:
 * several trainers step together, on accelerators whose step time is simulated.
 */
import { Dataset, releaseElement, type Tensor } from "../../../mod.ts";
import type { PeerFiles } from "../files.ts";
import { startService } from "./service.ts";
import type { Pipelines, Running } from "./step.ts";

const BATCH = 16;
const TOKENS_MAX = 512;
/** The time of a step: a constant part, and a part for each padded token of its batch. */
const STEP: StepTime = { constantMs: 10, perTokenMs: 0.01 };
const NO_TIME: StepTime = { constantMs: 0, perTokenMs: 0 };

interface StepTime {
  readonly constantMs: number;
  readonly perTokenMs: number;
}

/** How trainers read together. */
interface Coordination {
  readonly consumers: number;
  readonly workers: number;
  /** Buckets end at every multiple of this number of tokens. */
  readonly bucket: number;
  readonly stepTime: StepTime;
}

function sequences({ sequences }: PeerFiles): Dataset<Int32Array> {
  return Dataset.textLines([...sequences]).repeat().shuffle(1_000)
    .map((line) => Int32Array.from(line.split(" "), Number));
}

/** The baseline without a service: each trainer pads its own batches. */
function padded(consumers: number) {
  return (files: PeerFiles) =>
    training(
      Array.from({ length: consumers }, () => sequences(files).paddedBatch(BATCH).prefetch(1)),
      STEP,
    );
}

/** All trainers get batches of one bucket in a step. */
function coordinatedBy({ consumers, workers, bucket, stepTime }: Coordination) {
  return async (files: PeerFiles): Promise<Running> => {
    // Long, because trainers do not read between windows.
    const service = await startService({ workers, worker: { skipAfterMs: 5_000 } });
    const boundaries = Array.from(
      { length: TOKENS_MAX / bucket - 1 },
      (_, index) => (index + 1) * bucket + 1,
    );
    const rounds = sequences(files).bucketBySequenceLength({
      length: (tokens) => tokens.length,
      boundaries,
      batchSizes: Array.from({ length: boundaries.length + 1 }, () => BATCH),
    }).groupByWindow({
      key: (batch, { bucket }) => Math.floor((batch.shape[1]! - 1) / bucket),
      reduce: (_bucket, batches) => batches,
      windowSize: consumers,
      captures: { bucket },
    });
    const readers = Array.from({ length: consumers }, (_, consumerIndex) =>
      rounds.distribute({
        ...{ service: service.address, jobName: "coordinated", compression: "none" },
        ...{ consumerIndex, numConsumers: consumers },
      }));
    return training(readers, stepTime, { bucket, service });
  };
}

/** The parameters that only coordinated trainers have. */
interface Coordinated {
  readonly bucket: number;
  readonly service: AsyncDisposable;
}

function training(
  readers: readonly Dataset<Tensor>[],
  { constantMs, perTokenMs }: StepTime,
  { bucket, service }: Partial<Coordinated> = {},
): Running {
  const iterators = readers.map((reader) => reader.iterator());
  /** The total lateness of the steps so far. */
  let lateMs = 0;
  const total = { busyMs: 0, stepsMs: 0, real: 0, padded: 0 };
  return {
    async step() {
      const results = await Promise.all(iterators.map((iterator) => iterator.next()));
      const batches = results.map(({ value }) => value as Tensor);
      const buckets = batches.map(({ shape }) => Math.floor((shape[1]! - 1) / (bucket ?? 1)));
      if (bucket !== undefined && new Set(buckets).size > 1) {
        throw new Error(`a step has batches of the buckets ${buckets}`);
      }
      const sizes = batches.map(({ shape }) => shape[0]! * shape[1]!);
      const times = sizes.map((tokens) => constantMs + perTokenMs * tokens);
      const real = sum(batches.map(realTokens));
      batches.forEach((batch) => releaseElement(batch));
      const stepMs = Math.max(...times);
      total.real += real;
      total.padded += sum(sizes);
      total.busyMs += sum(times);
      total.stepsMs += stepMs * times.length;
      if (stepMs === 0) return 1;
      const startedAtMs = performance.now();
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, stepMs - lateMs)));
      lateMs += performance.now() - startedAtMs - stepMs;
      return real;
    },
    get also() {
      const { busyMs, stepsMs, real, padded } = total;
      return {
        ...(stepsMs === 0 ? {} : { "% idle": 100 * (1 - busyMs / stepsMs) }),
        "% padding": 100 * (1 - real / padded),
      };
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(iterators.map((iterator) => iterator[Symbol.asyncDispose]()));
      await service?.[Symbol.asyncDispose]();
    },
  };
}

function realTokens({ data }: Tensor): number {
  let count = 0;
  for (const token of data as Int32Array) if (token !== 0) count++;
  return count;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

export const coordinated: Pipelines = {
  "padded-4": padded(4),
  "padded-16": padded(16),
  "coordinated-4": coordinatedBy({ consumers: 4, workers: 1, bucket: 128, stepTime: STEP }),
  "coordinated-16": coordinatedBy({ consumers: 16, workers: 4, bucket: 64, stepTime: STEP }),
  "coordinated-rounds": coordinatedBy({
    ...{ consumers: 4, workers: 1, bucket: 128 },
    stepTime: NO_TIME,
  }),
};
