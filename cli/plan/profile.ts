/**
 * Profiles a pipeline: runs it for a few seconds on this host, as fast as possible, as a worker
 * would, and measures the cost of a batch.
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

/** Least number of batches, however long they take: fewer do not show how batches differ. */
const BATCHES_MIN = 3;

/** Limit of the batches: more are not needed. */
const BATCHES_MAX = 100_000;

const YARDSTICK_EVERY_MS = 25;

const PROGRESS_EVERY_MS = 100;

/** The profile has this many parts. The spread of their means shows how exact its mean is. */
const PARTS = 10;

/** With less contention a host counts as free: contention is measured no more exactly. */
const CONTENTION_MIN = 1.1;

const SPREAD_LOW = 0.1;

const SPREAD_HIGH = 0.9;

const MICROSECONDS_PER_MS = 1_000;

/** The cost of one operator per batch. */
interface OperatorShare {
  readonly operator: string;
  readonly number: number;
  /** Work on the thread, and waiting for its inputs, per batch, in ms. */
  readonly selfMs: number;
  readonly waitMs: number;
}

/** The measurements. All times are in ms, and the mean of a batch unless stated otherwise. */
export interface Profile {
  readonly batches: number;
  /** How often the dataset was started; 1 unless it ended. */
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
  /** The mean of a fast and of a slow tenth of the profile. */
  readonly batchLowMs: number;
  readonly batchHighMs: number;
  /** Times of single batches. */
  readonly percentilesMs: Readonly<Record<"p10" | "p50" | "p90" | "p99", number>>;
  /** The coefficient of variation of batch times: standard deviation over mean. */
  readonly variation: number;
  /** CPU time of the whole process. */
  readonly cpuMs: number;
  /** The part of it on the pipeline's own thread; the rest is decoders and garbage collection. */
  readonly threadMs: number;
  /** The share of a batch's time spent computing. */
  readonly computingShare: number;
  readonly encodeMs: number;
  /** The time of a trainer to decode a batch from its message. */
  readonly decodeMs: number;
  /** The size of an encoded batch. */
  readonly batchBytes: number;
  /** Peak resident memory of this process. */
  readonly memoryBytes: number;
  /** The factor by which other programs slowed computing down. */
  readonly contention: number;
  /**
   * How often a worker asks the dispatcher for a split; absent if the sources cannot be divided.
   */
  readonly splitsPerBatch?: number;
  /** The time of one such request on this host, in ms; 0 if there is none. */
  readonly splitMs: number;
  /** Whether the last operator prefetches, so that the pipeline works while its consumer does. */
  readonly readsAhead: boolean;
  readonly operators: readonly OperatorShare[];
  /** The advice of `explain()`: what is slow, and what to do about it. */
  readonly advice: string;
}

export interface ProfileOptions {
  /** How long to measure after the warm-up. */
  readonly seconds: number;
  /** Called now and then with the progress; 0 batches means waiting for the first. */
  readonly onProgress?: (batches: number, seconds: number) => void;
}

/**
 * Profiles a pipeline on the calling thread. A pipeline that ends is restarted, as often as the
 * time allows.
 * @throws {LeatError} `failed_precondition` for a dataset without elements; the error of an element
 * that failed.
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
  readonly #spanMs: number;
  readonly #onProgress: NonNullable<ProfileOptions["onProgress"]>;
  readonly #yardstick = new Yardstick();
  readonly #codec = new CodecTimes();
  readonly #pullsMs: number[] = [];
  readonly #beganMs = performance.now();
  readonly #run: EndlessRun<DatasetIterator<unknown>>;
  #firstBatchMs = 0;
  #measured: StepFigures = { steps: 0, elapsedMs: 0, cpuMs: 0 };
  #threadMs = 0;
  #splitsFrom = 0;
  #memoryBytes = 0;
  #yardstickAtMs = 0;
  #progressAtMs = 0;
  /** Of the iterator with most batches. */
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
    this.#spanMs = 1_000 * seconds;
    this.#onProgress = onProgress;
    this.#run = new EndlessRun(
      () => this.#begin(),
      (iterator, taken) => this.#noteIterator(iterator, taken),
    );
  }

  /** The first batch, however long it takes, and batches soon after it. */
  async warmUp(): Promise<void> {
    using _ = every(PROGRESS_EVERY_MS, () => this.#tellProgress());
    this.#codec.measure(await this.#pull());
    this.#firstBatchMs = performance.now() - this.#beganMs;
    const untilMs = performance.now() + WARM_UP_SHARE * this.#spanMs;
    while (performance.now() < untilMs && this.#run.runs === 1) await this.#pull();
  }

  async measure(): Promise<void> {
    this.#codec.reset();
    const meter = meterOf(() => process.cpuUsage());
    const ofThread = meterOf(() => process.threadCpuUsage());
    this.#splitsFrom = this.#splits?.handed ?? 0;
    while (
      meter.steps < BATCHES_MIN || (meter.elapsedMs < this.#spanMs && meter.steps < BATCHES_MAX)
    ) {
      const startMs = performance.now();
      const batch = await this.#pull();
      this.#pullsMs.push(performance.now() - startMs);
      meter.step();
      this.#codec.due(batch);
      this.#now(performance.now());
    }
    this.#measured = meter.read();
    this.#threadMs = ofThread.read().cpuMs;
    this.#noteIterator(this.#run.iterator, this.#run.taken);
  }

  result(): Omit<Profile, "splitMs"> {
    const count = this.#measured.steps;
    const measuredContention = this.#yardstick.contention;
    const contention = measuredContention < CONTENTION_MIN ? 1 : measuredContention;
    const besidesMs = (this.#yardstick.totalMs + this.#codec.totalMs) / contention;
    const cpuMs = Math.max(0, this.#measured.cpuMs - besidesMs) / count;
    const threadMs = Math.max(0, this.#threadMs - besidesMs) / count;
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
      batchLowMs: scaled(percentile(parts, SPREAD_LOW)),
      batchHighMs: scaled(percentile(parts, SPREAD_HIGH)),
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
        : { splitsPerBatch: (this.#splits.handed - this.#splitsFrom) / count }),
      readsAhead: this.#best.operators[0]?.operator === "prefetch",
      operators: this.#best.operators,
      advice: this.#best.advice,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#run[Symbol.asyncDispose]();
  }

  /** Starts the dataset as the task of a worker does. */
  #begin(): DatasetIterator<unknown> {
    const { node } = this.#dataset;
    return openIterator(node, this.#splits === undefined ? {} : { splits: this.#splits.source() });
  }

  /** The next batch, of a new run if this one has ended. */
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

  /** Does the periodic work between batches. */
  #now(nowMs: number): void {
    if (nowMs - this.#yardstickAtMs >= YARDSTICK_EVERY_MS) {
      this.#yardstick.measure();
      this.#yardstickAtMs = performance.now();
    }
    if (nowMs - this.#progressAtMs < PROGRESS_EVERY_MS) return;
    this.#progressAtMs = nowMs;
    this.#memoryBytes = Math.max(this.#memoryBytes, Deno.memoryUsage().rss);
    this.#tellProgress();
  }

  #tellProgress(): void {
    const seconds = (performance.now() - this.#beganMs) / 1_000;
    this.#onProgress(this.#run.takenOfAll, seconds);
  }

  #noteIterator(iterator: DatasetIterator<unknown>, taken: number): void {
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

/** Measures from now on, with the CPU time that `usage` gives. */
function meterOf(usage: () => { readonly user: number; readonly system: number }): StepMeter {
  const cpuMs = () => {
    const { user, system } = usage();
    return (user + system) / MICROSECONDS_PER_MS;
  };
  return new StepMeter({ nowMs: () => performance.now(), cpuMs });
}

/** The means of consecutive parts of a list. */
function partMeans(values: readonly number[]): number[] {
  const parts = Math.min(PARTS, values.length);
  return Array.from({ length: parts }, (_, i) => {
    const at = (part: number) => Math.floor(part * values.length / parts);
    return mean(values.slice(at(i), at(i + 1)));
  });
}

function deviation(values: readonly number[]): number {
  const middle = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - middle) ** 2)));
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
