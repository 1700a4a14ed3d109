/**
 * Profiles a pipeline: runs it as a worker would, as fast as possible, for a few seconds on this host,
 * and measures the cost of a batch.
 */

import process from "node:process";
import { openIterator } from "../../data/dataset_iterator.ts";
import { type Dataset, type DatasetIterator, LeatError } from "../../mod.ts";
import { EndlessRun, type StepFigures, StepMeter } from "../../offload/step_meter.ts";
import { CodecTimes } from "./codec_times.ts";
import { CountedSplits } from "./counted_splits.ts";
import { withGrantHint } from "./grant_hint.ts";
import { mean, percentile } from "../lib/statistics.ts";
import { Yardstick } from "./yardstick.ts";

/** The warm-up after the first batch, as a share of the measuring time. It is not measured. */
const WARM_UP_SHARE = 0.2;

/** At least this many batches are measured, however long they take: fewer do not show how they differ. */
const BATCHES_MIN = 3;

/** Limit of the measured batches: more are not needed. */
const BATCHES_MAX = 100_000;

const YARDSTICK_EVERY_MS = 25;

const PROGRESS_EVERY_MS = 100;

/** The profile is divided into this many parts. Their means show how speed changes over time. */
const PARTS = 10;

/** With less contention than this the host counts as free: less cannot be measured reliably. */
const CONTENTION_MIN = 1.1;

const MICROSECONDS_PER_MS = 1_000;

/** The cost of one operator per batch. */
interface OperatorCost {
  readonly operator: string;
  readonly number: number;
  /** Work on the thread, and waiting for its inputs, per batch, in ms. */
  readonly selfMs: number;
  readonly waitMs: number;
}

/** The measurements. All times are in ms, and the mean of a batch unless stated otherwise. */
export interface Profile {
  readonly batches: number;
  /** How many times the dataset was started: 1 unless it ended. */
  readonly runs: number;
  /** The duration of the measurement. */
  readonly measuredMs: number;
  /**
   * The time until the first batch, which opens files and fills shuffle buffers. The other figures do
   * not include it.
   */
  readonly firstBatchMs: number;
  /** How long a batch occupies a worker's thread: waiting, computing and encoding. */
  readonly batchMs: number;
  /** Mean batch times of a fast and of a slow tenth of the profile. */
  readonly batchLowMs: number;
  readonly batchHighMs: number;
  /** Times of single batches, without encoding. */
  readonly percentilesMs: Readonly<Record<"p10" | "p50" | "p90" | "p99", number>>;
  /** The coefficient of variation of batch times: standard deviation over mean. */
  readonly variation: number;
  /** CPU time of the whole process. */
  readonly cpuMs: number;
  /** The part of `cpuMs` on the pipeline's own thread. The rest is decoders and garbage collection. */
  readonly threadMs: number;
  /** The share of a batch's time spent computing. */
  readonly computingShare: number;
  readonly encodeMs: number;
  /** The time in which a trainer decodes a batch from its message. */
  readonly decodeMs: number;
  /** The size of an encoded batch. */
  readonly batchBytes: number;
  /** Peak resident memory of this process. */
  readonly memoryBytes: number;
  /** The factor by which other programs slowed down computing. */
  readonly contention: number;
  /** How many splits a worker requests per batch. Absent if the sources cannot be divided. */
  readonly splitsPerBatch?: number;
  /** The time of one request for a split on this host, in ms; 0 if there are no splits. */
  readonly splitMs: number;
  /** Whether the last operator prefetches, so that pipeline and consumer work at the same time. */
  readonly readsAhead: boolean;
  readonly operators: readonly OperatorCost[];
  /** The advice of `explain()`: what is slow, and what to do about it. */
  readonly advice: string;
}

export interface ProfileOptions {
  /** How long to measure after the warm-up. */
  readonly seconds: number;
  /** Called periodically with the progress. 0 batches: waiting for the first. */
  readonly onProgress?: (batches: number, seconds: number) => void;
}

/**
 * Profiles a pipeline on the calling thread. A pipeline that ends is restarted, as often as the
 * time allows.
 * @throws {LeatError} `failed_precondition` for a dataset without elements; the code of the cause if
 * an element fails.
 */
export async function profilePipeline(
  dataset: Dataset<unknown>,
  options: ProfileOptions,
): Promise<Omit<Profile, "splitMs">> {
  let splits;
  try {
    splits = await CountedSplits.of(dataset);
  } catch (error) {
    throw withGrantHint(
      new LeatError(
        LeatError.from(error).code,
        "The splits of the pipeline's sources cannot be listed",
        { cause: error },
      ),
    );
  }
  await using run = new ProfileRun(dataset, splits, options);
  await run.warmUp();
  await run.measure();
  return run.result();
}

class ProfileRun implements AsyncDisposable {
  readonly #dataset: Dataset<unknown>;
  readonly #splits: CountedSplits | undefined;
  readonly #durationMs: number;
  readonly #onProgress: NonNullable<ProfileOptions["onProgress"]>;
  readonly #yardstick = new Yardstick();
  readonly #codec = new CodecTimes();
  readonly #pullsMs: number[] = [];
  readonly #startedMs = performance.now();
  readonly #run: EndlessRun<DatasetIterator<unknown>>;
  #firstBatchMs = 0;
  #measured: StepFigures = { steps: 0, elapsedMs: 0, cpuMs: 0 };
  #threadMs = 0;
  #splitsBefore = 0;
  #memoryBytes = 0;
  #yardstickUsedMs = 0;
  #progressShownMs = 0;
  /** The statistics of the iterator that yielded most batches. */
  #best: Pick<Profile, "operators" | "advice"> & { taken: number } = {
    taken: 0,
    operators: [],
    advice: "",
  };

  constructor(
    dataset: Dataset<unknown>,
    splits: CountedSplits | undefined,
    { seconds, onProgress = () => {} }: ProfileOptions,
  ) {
    this.#dataset = dataset;
    this.#splits = splits;
    this.#durationMs = 1_000 * seconds;
    this.#onProgress = onProgress;
    this.#run = new EndlessRun(
      () => this.#openIterator(),
      (iterator, taken) => this.#recordIterator(iterator, taken),
    );
  }

  /** Pulls the first batch, however long it takes, and then batches until the warm-up time is over. */
  async warmUp(): Promise<void> {
    using _ = every(PROGRESS_EVERY_MS, () => this.#reportProgress());
    this.#codec.measure(await this.#pull());
    this.#firstBatchMs = performance.now() - this.#startedMs;
    const untilMs = performance.now() + WARM_UP_SHARE * this.#durationMs;
    while (performance.now() < untilMs && this.#run.runs === 1) await this.#pull();
  }

  async measure(): Promise<void> {
    this.#codec.reset();
    const meter = meterOf(() => process.cpuUsage());
    const threadMeter = meterOf(() => process.threadCpuUsage());
    this.#splitsBefore = this.#splits?.assigned ?? 0;
    while (
      meter.steps < BATCHES_MIN || (meter.elapsedMs < this.#durationMs && meter.steps < BATCHES_MAX)
    ) {
      const startMs = performance.now();
      const batch = await this.#pull();
      this.#pullsMs.push(performance.now() - startMs);
      meter.step();
      this.#codec.sample(batch);
      this.#doPeriodicWork(performance.now());
    }
    this.#measured = meter.read();
    this.#threadMs = threadMeter.read().cpuMs;
    this.#recordIterator(this.#run.iterator, this.#run.taken);
  }

  result(): Omit<Profile, "splitMs"> {
    const count = this.#measured.steps;
    const measuredContention = this.#yardstick.contention;
    const contention = measuredContention < CONTENTION_MIN ? 1 : measuredContention;
    const overheadMs = (this.#yardstick.totalMs + this.#codec.totalMs) / contention;
    const cpuMs = Math.max(0, this.#measured.cpuMs - overheadMs) / count;
    const threadMs = Math.max(0, this.#threadMs - overheadMs) / count;
    const meanMs = mean(this.#pullsMs);
    const fastestMs = percentile(this.#pullsMs, 0);
    const pullMs = undisturbed({ wallMs: meanMs, fastestMs, cpuMs }, contention);
    const { encodeMs, decodeMs, batchBytes } = this.#codec.result(contention);
    const parts = partMeans(this.#pullsMs);
    const scaled = (ms: number) => ms * pullMs / meanMs + encodeMs;
    return {
      batches: count,
      runs: this.#run.runs,
      measuredMs: this.#measured.elapsedMs,
      firstBatchMs: this.#firstBatchMs,
      batchMs: pullMs + encodeMs,
      batchLowMs: scaled(Math.min(...parts)),
      batchHighMs: scaled(Math.max(...parts)),
      percentilesMs: {
        p10: percentile(this.#pullsMs, 0.1),
        p50: percentile(this.#pullsMs, 0.5),
        p90: percentile(this.#pullsMs, 0.9),
        p99: percentile(this.#pullsMs, 0.99),
      },
      variation: deviation(this.#pullsMs) / meanMs,
      cpuMs: cpuMs + encodeMs,
      threadMs: threadMs + encodeMs,
      computingShare: Math.min(1, (cpuMs + encodeMs) / (pullMs + encodeMs)),
      encodeMs,
      decodeMs,
      batchBytes,
      memoryBytes: this.#memoryBytes,
      contention,
      ...(this.#splits === undefined
        ? {}
        : { splitsPerBatch: (this.#splits.assigned - this.#splitsBefore) / count }),
      readsAhead: this.#best.operators[0]?.operator === "prefetch",
      operators: this.#best.operators,
      advice: this.#best.advice,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#run[Symbol.asyncDispose]();
  }

  /** Starts the dataset as a worker's task does. */
  #openIterator(): DatasetIterator<unknown> {
    const { node } = this.#dataset;
    return openIterator(node, this.#splits === undefined ? {} : { splits: this.#splits.source() });
  }

  /** Returns the next batch. If the dataset has ended, starts it again. */
  async #pull(): Promise<unknown> {
    let taken;
    try {
      taken = await this.#run.next();
    } catch (error) {
      throw elementFailed(this.#run.taken + 1, error);
    }
    if (taken === undefined) throw isEmpty(this.#run.runs);
    return taken.element;
  }

  /** Measures contention and memory and reports progress, if it is time. */
  #doPeriodicWork(nowMs: number): void {
    if (nowMs - this.#yardstickUsedMs >= YARDSTICK_EVERY_MS) {
      this.#yardstick.measure();
      this.#yardstickUsedMs = performance.now();
    }
    if (nowMs - this.#progressShownMs < PROGRESS_EVERY_MS) return;
    this.#progressShownMs = nowMs;
    this.#memoryBytes = Math.max(this.#memoryBytes, Deno.memoryUsage().rss);
    this.#reportProgress();
  }

  #reportProgress(): void {
    const seconds = (performance.now() - this.#startedMs) / 1_000;
    this.#onProgress(this.#run.takenOfAll, seconds);
  }

  #recordIterator(iterator: DatasetIterator<unknown>, taken: number): void {
    if (taken <= this.#best.taken) return;
    const operators = iterator.stats().map(({ operator, number, selfMs, waitMs }) => ({
      ...{ operator, number },
      ...{ selfMs: selfMs / taken, waitMs: waitMs / taken },
    }));
    this.#best = { taken, operators, advice: iterator.explain().advice.at(-1) ?? "" };
  }
}

/**
 * The mean time of a batch on a free host: other programs slow down computing, but not waiting. The
 * result is at least the time of the fastest batch.
 */
export function undisturbed(
  { wallMs, fastestMs, cpuMs }: Readonly<Record<"wallMs" | "fastestMs" | "cpuMs", number>>,
  contention: number,
): number {
  const computingMs = Math.min(cpuMs, wallMs);
  return Math.max(computingMs, fastestMs, wallMs - computingMs * (contention - 1));
}

/** Starts a meter that reads the CPU time from `usage`. */
function meterOf(usage: () => { readonly user: number; readonly system: number }): StepMeter {
  const cpuMs = () => {
    const { user, system } = usage();
    return (user + system) / MICROSECONDS_PER_MS;
  };
  return new StepMeter({ nowMs: () => performance.now(), cpuMs });
}

/** Returns the means of consecutive parts of a list. */
function partMeans(values: readonly number[]): number[] {
  const parts = Math.min(PARTS, values.length);
  return Array.from({ length: parts }, (_, i) => {
    const startOf = (part: number) => Math.floor(part * values.length / parts);
    return mean(values.slice(startOf(i), startOf(i + 1)));
  });
}

function deviation(values: readonly number[]): number {
  const average = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - average) ** 2)));
}

function isEmpty(runs: number): LeatError {
  return new LeatError(
    "failed_precondition",
    runs === 1
      ? "The pipeline gives no elements. Check that its files exist and that no filter drops everything"
      : `The pipeline gave elements when it was run first, but none when it was run again (run ${runs})`,
  );
}

function elementFailed(number: number, cause: unknown): LeatError {
  const { code } = LeatError.from(cause);
  const what = `Element ${number} of the pipeline failed`;
  const denied = withGrantHint(new LeatError(code, what, { cause }));
  if (denied.message !== what) return denied;
  return new LeatError(
    code,
    `${what}. Fix it, or skip such elements with ignoreErrors()`,
    { cause },
  );
}

/** Repeats an action until disposed. */
function every(periodMs: number, act: () => void): Disposable {
  const timer = setInterval(act, periodMs);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
