/**
 * Measures the metrics of algorithm 1 (FastFlow paper, section 5.1): a few training steps, on a
 * copy of the training state, with the local pipeline and with each candidate.
 */
import { LeatError } from "../core/error.ts";
import { keepMemory } from "../data/elements/released.ts";
import { sizeOf } from "./figures.ts";
import { type Clocks, EndlessRun, type StepFigures, StepMeter } from "./step_meter.ts";
import type { CandidateMetrics, OffloadMetrics } from "./decide.ts";

/** The fewest steps of a measurement. */
const STEPS_MIN = 8;
/** A measurement ends when the standard error of its steps' mean duration is below this share. */
const ERROR_MAX = 0.02;
/** After this time, in ms, a measurement ends with {@linkcode STEPS_MIN} steps, exact or not. */
const MEASURED_MS_MAX = 10_000;
/** Steps before a measurement: code is compiled and buffers fill. */
const WARM_UP_SHARE = 0.5;
/** A candidate that is so slow that this many local steps end first is measured less exactly. */
const LOCAL_STEPS_MAX = 20;
/** The fewest steps of such a measurement. */
const SLOW_STEPS_MIN = 3;

export interface ProfileOptions {
  readonly clocks: Clocks;
  /** Resolves after so many ms. */
  readonly sleep: (ms: number) => Promise<void>;
  /** Steps per measurement, at most. */
  readonly steps: number;
  /** Makes one training step on a copy of the training state. Left out: there is none. */
  readonly train?: ((batch: unknown) => unknown) | undefined;
  /** How long a training step takes, in ms, where `train` is left out. */
  readonly stepMs?: number | undefined;
  /** How long a training step takes with the local pipeline, in ms. Left out: it is not known. */
  readonly localStepMs?: number | undefined;
}

/** Opens a pipeline to be measured. */
export type OpenRun = () => AsyncIterator<unknown> & AsyncDisposable;

/**
 * Whether a candidate needs no further steps, given its throughput so far in bytes per second: it
 * cannot be chosen, or does not work.
 */
export type IsDecided = (bytesPerSecond: number) => boolean;

/** The throughput of a loop over a pipeline. */
interface Throughput {
  readonly bytesPerSecond: number;
  /** CPU time of this process per step without training, in ms. */
  readonly cpuMs: number;
  /** The first batch: the last one of a dataset may be short. */
  readonly batch: unknown;
}

/** The local metrics: Lthp and Pcycle, then Gthp, which is measured with one batch only. */
export async function profileLocal(
  open: OpenRun,
  options: ProfileOptions,
): Promise<Omit<OffloadMetrics, "candidates"> & { readonly batch: unknown }> {
  const { bytesPerSecond, cpuMs, batch } = await throughputOf(open, options);
  return {
    Gthp: await gradientThroughput(batch, options),
    Lthp: bytesPerSecond,
    Pcycle: cpuMs,
    batch,
  };
}

/** A candidate's Rthp and Ocycle. `open` opens the pipeline with all elements offloaded. */
export async function profileCandidate(
  name: string,
  open: OpenRun,
  options: ProfileOptions,
  isDecided: IsDecided = () => false,
): Promise<CandidateMetrics> {
  const { bytesPerSecond, cpuMs } = await throughputOf(open, options, isDecided);
  return { name, Rthp: bytesPerSecond, Ocycle: cpuMs };
}

/** thp(M): no step waits for data. */
async function gradientThroughput(
  batch: unknown,
  options: ProfileOptions,
): Promise<number> {
  const { train, stepMs = 0 } = options;
  if (train === undefined) return 1_000 * sizeOf(batch) / stepMs;
  await train(batch);
  const { steps, elapsedMs } = await measure(options, () => train(batch));
  return 1_000 * steps * sizeOf(batch) / elapsedMs;
}

/** thp(P + M), and then the CPU time of P alone. */
async function throughputOf(
  open: OpenRun,
  options: ProfileOptions,
  isDecided: IsDecided = () => false,
): Promise<Throughput> {
  const { clocks, steps, sleep, stepMs = 0, localStepMs = Infinity } = options;
  const step = options.train ?? (() => stepMs > 0 ? sleep(stepMs) : undefined);
  await using run = new EndlessRun(open);
  let bytes = 0;
  const next = async () => {
    const taken = await run.next();
    if (taken === undefined) throw isEmpty();
    bytes += sizeOf(taken.element);
    return taken.element;
  };
  const first = await next();
  // It is trained on again, to measure how fast that is without waiting.
  keepMemory(first);
  await step(first);
  const warmUp = Math.min(STEPS_MIN, Math.ceil(WARM_UP_SHARE * steps));
  const limitMs = LOCAL_STEPS_MAX * localStepMs;
  const warmUntilMs = clocks.nowMs() + WARM_UP_SHARE * limitMs;
  for (let at = 1; at < warmUp && clocks.nowMs() < warmUntilMs && !isDecided(Infinity); at++) {
    await step(await next());
  }
  // Only what has failed is decided by now.
  if (isDecided(Infinity)) return { bytesPerSecond: 0, cpuMs: 0, batch: first };
  bytes = 0;
  const training = await measure(
    options,
    async () => void await step(await next()),
    ({ elapsedMs }) => isDecided(1_000 * bytes / elapsedMs),
    limitMs,
  );
  const bytesPerSecond = 1_000 * bytes / training.elapsedMs;
  // Too slow to measure more: the CPU time of training is counted, too.
  if (training.steps < Math.min(steps, STEPS_MIN)) {
    return { bytesPerSecond, cpuMs: training.cpuMs / training.steps, batch: first };
  }
  const reading = await measure(options, next, ({ steps }) => steps >= STEPS_MIN);
  return { bytesPerSecond, cpuMs: reading.cpuMs / reading.steps, batch: first };
}

/** Makes steps until their mean duration is known well enough. */
async function measure(
  { clocks, steps: stepsMax }: ProfileOptions,
  step: () => unknown,
  isEnough: (figures: StepFigures) => boolean = () => false,
  limitMs = Infinity,
): Promise<StepFigures> {
  const meter = new StepMeter(clocks);
  let [before, squares] = [0, 0];
  for (;;) {
    await step();
    meter.step();
    const figures = meter.read();
    const { steps, elapsedMs } = figures;
    squares += (elapsedMs - before) ** 2;
    before = elapsedMs;
    if (steps >= stepsMax) return figures;
    if (steps < STEPS_MIN) {
      if (steps >= SLOW_STEPS_MIN && elapsedMs > limitMs) return figures;
      continue;
    }
    const mean = elapsedMs / steps;
    const error = Math.sqrt(Math.max(0, squares / steps - mean ** 2) / (steps - 1));
    const isExact = error <= ERROR_MAX * mean || elapsedMs > MEASURED_MS_MAX;
    if (isExact || isEnough(figures)) return figures;
  }
}

function isEmpty(): LeatError {
  return new LeatError(
    "failed_precondition",
    "The dataset gives no elements: are its files there, does a filter leave anything?",
  );
}
