/**
 * Measures the metrics of algorithm 1 (FastFlow paper, section 5.1). It makes a few training steps on
 * a copy of the training state, with the local pipeline and with each candidate.
 */
import { LeatError } from "../core/error.ts";
import { keepMemory } from "../data/elements/released.ts";
import { bytesOfElement } from "./figures.ts";
import { type Clocks, EndlessRun, type StepFigures, StepMeter } from "./step_meter.ts";
import type { Supply } from "./conditional/wait_meter.ts";
import type { CandidateMetrics, OffloadMetrics } from "./decide.ts";

/** The fewest steps of a measurement. */
const STEPS_MIN = 8;
/** A measurement ends when the standard error of its steps' mean duration is below this share. */
const ERROR_MAX = 0.02;
/** After this time, in ms, a measurement may be less exact: see {@linkcode ERROR_MAX_LATE}. */
const MEASURED_MS = 300;
/** The greatest error after {@linkcode MEASURED_MS}. */
const ERROR_MAX_LATE = 0.05;
/** After this time, in ms, {@linkcode STEPS_MIN} steps are enough, however inexact. */
const MEASURED_MS_MAX = 10_000;
/** Least time of the warm-up before a measurement, in ms. It lets code compile and buffers fill. */
const WARM_UP_MS = 300;
/** The warm-up lasts up to this time, in ms, while steps become faster. */
const WARM_UP_MS_MAX = 1_000;
/** Steps become faster if the last `FASTER_STEPS` take below this share of the time of those before. */
const FASTER_STEPS = 4;
const FASTER_SHARE = 0.9;
/** The warm-up can also end after this share of the steps of a measurement. */
const WARM_UP_SHARE = 0.5;
/** A candidate whose steps take this many times as long as local ones is measured less exactly. */
const SLOW_FACTOR = 5;
/** Such a slow candidate is measured for about the time of this many local steps. */
const LOCAL_STEPS_MAX = 20;
/** The fewest steps of a slow candidate's measurement. */
const SLOW_STEPS_MIN = 3;

/** Reading without training measures CPU time: `STEPS_MIN` steps, or fewer after this time, in ms. */
const READING_MS_MAX = 500;
/** This many elements in a row may fail before a measurement does: training goes on after each. */
const FAILED_ELEMENTS_MAX = 16;
/** A core that is busy for this share of the time counts as fully busy. */
const BUSY_SHARE = 0.8;
/** A timer that is later than this, in ms, is late because this host is busy. */
const TIMER_LATE_MS_MAX = 4;

export interface ProfileOptions {
  readonly clocks: Clocks;
  /** Resolves after `ms`. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** Steps per measurement, at most. */
  readonly steps: number;
  /** Makes one training step on a copy of the training state. Left out: there is none. */
  readonly train?: ((batch: unknown) => unknown) | undefined;
  /** The time of a training step, in ms, if `train` is left out. */
  readonly stepMs?: number | undefined;
  /** The time of a training step with the local pipeline, in ms. Left out: unknown. */
  readonly localStepMs?: number | undefined;
  /**
   * A candidate with a lower throughput in its first steps, in bytes per second, is measured no
   * further.
   */
  readonly firstThroughputMin?: number | undefined;
  /**
   * What several workers have given so far, and what of it waits here. Default: there are not several.
   */
  readonly supply?: (() => Supply | undefined) | undefined;
  /** When measuring ends at the latest, with what it has. A training step is not interrupted. */
  readonly untilMs?: number | undefined;
  /** Ends measuring with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Called at each step, with the greatest number of steps. */
  readonly onStep?: ((step: number, stepsMax: number) => void) | undefined;
  /** Called with the error of an element before a measurement throws it. */
  readonly onFailure?: ((error: unknown) => void) | undefined;
}

/** Opens a pipeline to be measured. */
export type OpenRun = () => AsyncIterator<unknown> & AsyncDisposable;

/**
 * Whether a candidate needs no further steps, given its throughput so far in bytes per second: it is
 * too slow to be chosen, or has failed. For `Infinity`: whether it has failed.
 */
export type IsDecided = (bytesPerSecond: number) => boolean;

/** A candidate's metrics, and its throughput in the first steps, in bytes per second. */
export interface CandidateProfile extends Exactness {
  readonly metrics: CandidateMetrics;
  readonly firstThroughput: number;
}

/** The local metrics. */
export interface LocalProfile extends Omit<OffloadMetrics, "candidates">, Exactness {
  /** A batch of the pipeline. */
  readonly batch: unknown;
}

interface Exactness {
  /** Whether no step is missing because time ran out. */
  readonly isComplete: boolean;
}

/** The throughput of a loop over a pipeline. */
interface Throughput extends Exactness {
  /** In the first steps, in bytes per second. */
  readonly firstThroughput: number;
  readonly bytesPerSecond: number;
  /** CPU time of this process per step without training, in ms. */
  readonly cpuMs: number;
  /** CPU time of this process per step with training, in ms. */
  readonly trainingCpuMs: number;
  /** CPU time that was left unused, as a share of the time that was used. */
  readonly idle: number;
  /** The first batch: the last one of a dataset may be short. */
  readonly batch: unknown;
}

/**
 * Measures the local metrics: Lthp and Pcycle, then Gthp by training on one batch repeatedly.
 * Undefined if there was no time for a step.
 */
export async function profileLocal(
  open: OpenRun,
  options: ProfileOptions,
): Promise<LocalProfile | undefined> {
  const measured = await throughputOf(open, options);
  if (measured === undefined) return undefined;
  const { bytesPerSecond, cpuMs, trainingCpuMs, idle, batch } = measured;
  const gradient = await gradientThroughput(batch, options);
  return {
    Gthp: gradient.bytesPerSecond,
    Lthp: bytesPerSecond,
    Pcycle: cpuMs,
    Gcycle: Math.max(0, trainingCpuMs - cpuMs),
    idle,
    batch,
    isComplete: measured.isComplete && gradient.isComplete,
  };
}

/**
 * Measures a candidate's Rthp and Ocycle. `open` opens the pipeline with all elements offloaded.
 * Undefined if there was no time for a step.
 */
export async function profileCandidate(
  name: string,
  open: OpenRun,
  options: ProfileOptions,
  isDecided: IsDecided = () => false,
): Promise<CandidateProfile | undefined> {
  const measured = await throughputOf(open, options, isDecided);
  if (measured === undefined) return undefined;
  const { bytesPerSecond: Rthp, cpuMs: Ocycle, firstThroughput, isComplete } = measured;
  return { metrics: { name, Rthp, Ocycle }, firstThroughput, isComplete };
}

/** thp(M): the throughput if no step waits for data. */
async function gradientThroughput(
  batch: unknown,
  options: ProfileOptions,
): Promise<Pick<Throughput, "bytesPerSecond" | "isComplete">> {
  const { train, stepMs = 0 } = options;
  const bytes = 1_000 * bytesOfElement(batch);
  if (train === undefined) return { bytesPerSecond: bytes / stepMs, isComplete: true };
  await train(batch);
  using limit = new TimeLimit(options);
  const { steps, elapsedMs } = await measure(options, () => train(batch), { limit });
  return { bytesPerSecond: steps * bytes / elapsedMs, isComplete: !limit.isUp };
}

/** thp(P + M), and then the CPU time of P alone. */
async function throughputOf(
  open: OpenRun,
  options: ProfileOptions,
  isDecided: IsDecided = () => false,
): Promise<Throughput | undefined> {
  const { clocks, steps, localStepMs = Infinity, firstThroughputMin = 0, onStep } = options;
  const train = options.train ?? sleepingSteps(options);
  const warmUpMin = Math.min(STEPS_MIN, Math.ceil(WARM_UP_SHARE * steps));
  using limit = new TimeLimit(options);
  await using run = new EndlessRun(open);
  let bytes = 0;
  let taken = 0;
  let failures: unknown[] = [];
  const failed = (error: unknown) => {
    options.onFailure?.(error);
    return error;
  };
  const next = async (): Promise<unknown> => {
    onStep?.(++taken, 2 * steps + Math.min(steps, STEPS_MIN));
    let given;
    try {
      given = await limit.race(run.next());
    } catch (error) {
      const isOver = error === TIME_IS_UP || options.signal?.aborted === true;
      if (isOver) throw error;
      if (failures.push(error) > FAILED_ELEMENTS_MAX) throw failed(error);
      return await next();
    }
    if (given === undefined) throw failed(failures[0] ?? emptyDatasetError());
    failures = [];
    bytes += bytesOfElement(given.element);
    return given.element;
  };
  let warm: Throughput | undefined;
  try {
    const first = await next();
    // `gradientThroughput` trains on this batch again: its memory must not be reused.
    keepMemory(first);
    await train(first);
    bytes = 0;
    const warmUp = new StepMeter(clocks);
    const atMs = [0];
    const isSlow = () => fastestOf(atMs) > SLOW_FACTOR * localStepMs && !isFaster(atMs);
    const limitMs = LOCAL_STEPS_MAX * localStepMs;
    const isOver = () =>
      limit.isUp || isSlow() && warmUp.elapsedMs > Math.max(WARM_UP_MS, WARM_UP_SHARE * limitMs);
    let firstThroughput = NaN;
    while (warmUp.steps + 1 < steps && !isDecided(Infinity) && !isOver()) {
      await train(await next());
      warmUp.step();
      atMs.push(warmUp.elapsedMs);
      warm = { ...throughputIn(warmUp.read(), bytes), idle: 0, batch: first, isComplete: false };
      if (warmUp.steps + 1 < warmUpMin) continue;
      if (Number.isNaN(firstThroughput)) firstThroughput = 1_000 * bytes / warmUp.elapsedMs;
      if (firstThroughput < firstThroughputMin || isWarm(atMs, steps)) break;
    }
    const { elapsedMs, cpuMs: warmUpCpuMs, steps: count } = warmUp.read();
    if (Number.isNaN(firstThroughput)) firstThroughput = 1_000 * bytes / elapsedMs;
    // With Infinity, only a candidate that has failed is decided.
    const hasFailed = isDecided(Infinity);
    if (hasFailed || firstThroughput < firstThroughputMin) {
      const known = { firstThroughput, idle: 0, batch: first, isComplete: !limit.isUp };
      const stepCpuMs = count === 0 ? 0 : warmUpCpuMs / count;
      return {
        ...{ ...known, bytesPerSecond: hasFailed ? 0 : firstThroughput },
        ...{ cpuMs: stepCpuMs, trainingCpuMs: stepCpuMs },
      };
    }
    bytes = 0;
    let ahead = arrivals(options);
    const training = await measure(options, async () => void await train(await next()), {
      isEnough: ({ elapsedMs }) => isDecided(1_000 * bytes * ahead() / elapsedMs),
      ...{ limit, limitMs: isSlow() ? limitMs : Infinity },
    });
    const trainingCpuMs = training.cpuMs / training.steps;
    const found = {
      firstThroughput,
      ...{ bytesPerSecond: 1_000 * bytes * ahead() / training.elapsedMs, trainingCpuMs },
      ...{ cpuMs: trainingCpuMs, idle: idleOf(training), batch: first },
    };
    // Without time to measure reading alone, `cpuMs` includes the CPU time of training.
    if (training.steps < Math.min(steps, STEPS_MIN) || limit.isUp) {
      return { ...found, isComplete: !limit.isUp };
    }
    ahead = arrivals(options);
    const reading = await measure(options, next, {
      isEnough: ({ steps }) => steps >= STEPS_MIN,
      ...{ limit, limitMs: READING_MS_MAX },
    });
    const cpuMs = reading.cpuMs / (reading.steps * ahead());
    return { ...found, cpuMs, isComplete: !limit.isUp };
  } catch (error) {
    if (error === TIME_IS_UP) return warm;
    throw error;
  }
}

/**
 * Returns how many times as much has arrived since now as was taken. One worker at a time gives what
 * is taken, in order, while the others give splits after it: a measurement may be too short for these.
 */
function arrivals({ supply = () => undefined }: ProfileOptions): () => number {
  const before = supply();
  return () => {
    const now = supply();
    if (before === undefined || now === undefined) return 1;
    const taken = now.takenBytes - before.takenBytes;
    return taken > 0 ? Math.max(1, 1 + (now.bufferedBytes - before.bufferedBytes) / taken) : 1;
  };
}

/** What a warm-up alone tells. */
function throughputIn({ steps, elapsedMs, cpuMs }: StepFigures, bytes: number) {
  const bytesPerSecond = 1_000 * bytes / elapsedMs;
  const stepCpuMs = cpuMs / steps;
  return {
    ...{ bytesPerSecond, firstThroughput: bytesPerSecond },
    ...{ cpuMs: stepCpuMs, trainingCpuMs: stepCpuMs },
  };
}

/**
 * Training steps that only take time. Timers are late, so each step is shorter by what the last one was
 * late: otherwise a short step would count as waiting for data.
 */
function sleepingSteps(
  { clocks, sleep, stepMs = 0 }: ProfileOptions,
): () => undefined | Promise<void> {
  let lateMs = 0;
  const step = async (ms: number) => {
    const fromMs = clocks.nowMs();
    if (ms > 0) await sleep(ms);
    lateMs = Math.min(TIMER_LATE_MS_MAX, clocks.nowMs() - fromMs - ms);
  };
  return () => stepMs > 0 ? step(stepMs - lateMs) : undefined;
}

/** Whether a warm-up is long enough. @param atMs When each step ended. */
function isWarm(atMs: readonly number[], steps: number): boolean {
  const elapsedMs = atMs.at(-1)!;
  const isLong = elapsedMs >= WARM_UP_MS || atMs.length >= WARM_UP_SHARE * steps;
  return isLong && (elapsedMs >= WARM_UP_MS_MAX || !isFaster(atMs));
}

/** The shortest of the last steps; 0 if there is none. @param atMs When each step ended. */
function fastestOf(atMs: readonly number[]): number {
  const last = atMs.slice(-1 - FASTER_STEPS);
  return last.length < 2 ? 0 : Math.min(...last.slice(1).map((ms, i) => ms - last[i]!));
}

/** Whether the last steps were faster than those before. @param atMs When each step ended. */
function isFaster(atMs: readonly number[]): boolean {
  const steps = Math.min(FASTER_STEPS, Math.floor((atMs.length - 1) / 2));
  const [last, middle, first] = [0, 1, 2].map((at) => atMs.at(-1 - at * steps)!);
  return last! - middle! < FASTER_SHARE * (middle! - first!);
}

/** Unused CPU time as a share of the used one. It assumes that the loop has one core. */
function idleOf({ cpuMs, elapsedMs }: StepFigures): number {
  return Math.max(0, BUSY_SHARE * elapsedMs - cpuMs) / Math.max(cpuMs, elapsedMs / 1_000);
}

/** Makes steps until their mean duration is known well enough. */
async function measure(
  { clocks, steps: stepsMax }: ProfileOptions,
  step: () => unknown,
  { limit, isEnough = () => false, limitMs = Infinity }: {
    readonly limit: TimeLimit;
    readonly isEnough?: (figures: StepFigures) => boolean;
    /** After so many ms, {@linkcode SLOW_STEPS_MIN} steps are enough. */
    readonly limitMs?: number;
  },
): Promise<StepFigures> {
  const meter = new StepMeter(clocks);
  let figures = meter.read();
  let [lastMs, squares] = [0, 0];
  for (;;) {
    try {
      await step();
    } catch (error) {
      if (error === TIME_IS_UP && figures.steps > 0) return figures;
      throw error;
    }
    meter.step();
    figures = meter.read();
    const { steps, elapsedMs } = figures;
    squares += (elapsedMs - lastMs) ** 2;
    lastMs = elapsedMs;
    if (steps >= stepsMax || limit.isUp) return figures;
    if (steps < STEPS_MIN) {
      if (steps >= SLOW_STEPS_MIN && elapsedMs > limitMs) return figures;
      continue;
    }
    const mean = elapsedMs / steps;
    const error = Math.sqrt(Math.max(0, squares / steps - mean ** 2) / (steps - 1));
    const errorMax = elapsedMs > MEASURED_MS ? ERROR_MAX_LATE : ERROR_MAX;
    const isExact = error <= errorMax * mean || elapsedMs > MEASURED_MS_MAX;
    if (isExact || isEnough(figures)) return figures;
  }
}

/** Thrown when a measurement runs out of time. */
const TIME_IS_UP = new LeatError("deadline_exceeded", "Planning has no more time");

/** Limits how long a measurement waits for elements. Dispose it. */
class TimeLimit implements Disposable {
  readonly untilMs: number;
  readonly #clocks: Clocks;
  readonly #isOver = new AbortController();
  readonly #up: Promise<never> | undefined;
  #wasUp = false;

  constructor({ clocks, sleep, untilMs = Infinity, signal }: ProfileOptions) {
    this.untilMs = untilMs;
    this.#clocks = clocks;
    if (untilMs === Infinity) return;
    const leftMs = Math.max(0, untilMs - clocks.nowMs());
    const { signal: isOver } = this.#isOver;
    const ends = signal === undefined ? isOver : AbortSignal.any([signal, isOver]);
    this.#up = sleep(leftMs, ends).then(() => {
      this.#wasUp = true;
      throw TIME_IS_UP;
    });
    this.#up.catch(() => {});
  }

  get isUp(): boolean {
    return this.#wasUp || this.#clocks.nowMs() >= this.untilMs;
  }

  /** Waits for `pending`. Rejects with `TIME_IS_UP` when the time is up. */
  race<T>(pending: Promise<T>): Promise<T> {
    return this.#up === undefined ? pending : Promise.race([pending, this.#up]);
  }

  [Symbol.dispose](): void {
    this.#isOver.abort(TIME_IS_UP);
  }
}

function emptyDatasetError(): LeatError {
  return new LeatError(
    "failed_precondition",
    "The dataset gives no elements. Check that its files exist and that no filter drops everything",
  );
}
