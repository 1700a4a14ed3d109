/**
 * Measures the metrics of algorithm 1 (FastFlow paper, section 5.1): a few training steps, on a
 * copy of the training state, with the local pipeline and with each candidate.
 */
import { LeatError } from "../core/error.ts";
import { sizeOf } from "./figures.ts";
import { type Clocks, EndlessRun, StepMeter } from "./step_meter.ts";
import type { CandidateMetrics, OffloadMetrics } from "./decide.ts";

/** The paper's 50 to 100 steps. */
export const PROFILE_STEPS = 50;
/** Warm-up steps for each measured step: code is compiled and buffers fill. */
const WARM_UP_SHARE = 0.2;

/** What is measured, and how. */
export interface ProfileOptions {
  readonly clocks: Clocks;
  /** Resolves after so many ms. */
  readonly sleep: (ms: number) => Promise<void>;
  /** Steps per measurement. */
  readonly steps: number;
  /** Makes one training step on a copy of the training state. Left out: there is none. */
  readonly train?: ((batch: unknown) => unknown) | undefined;
  /** How long a training step takes, in ms, where `train` is left out. */
  readonly stepMs?: number | undefined;
}

/** Opens a pipeline to be measured. */
export type OpenRun = () => AsyncIterator<unknown> & AsyncDisposable;

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
): Promise<CandidateMetrics> {
  const { bytesPerSecond, cpuMs } = await throughputOf(open, options);
  return { name, Rthp: bytesPerSecond, Ocycle: cpuMs };
}

/** thp(M): no step waits for data. */
async function gradientThroughput(
  batch: unknown,
  { clocks, steps, train, stepMs = 0 }: ProfileOptions,
): Promise<number> {
  if (train === undefined) return 1_000 * sizeOf(batch) / stepMs;
  for (let step = 0; step < warmUpOf(steps); step++) await train(batch);
  const meter = new StepMeter(clocks);
  for (let step = 0; step < steps; step++) {
    await train(batch);
    meter.step();
  }
  return 1_000 * steps * sizeOf(batch) / meter.read().elapsedMs;
}

/** thp(P + M), and then the CPU time of P alone. */
async function throughputOf(open: OpenRun, options: ProfileOptions): Promise<Throughput> {
  const { clocks, steps, sleep, stepMs = 0 } = options;
  const step = options.train ?? (() => stepMs > 0 ? sleep(stepMs) : undefined);
  await using run = new EndlessRun(open);
  const next = async () => {
    const taken = await run.next();
    if (taken === undefined) throw isEmpty();
    return taken.element;
  };
  const first = await next();
  await step(first);
  for (let at = 1; at < warmUpOf(steps); at++) await step(await next());
  const training = new StepMeter(clocks);
  let bytes = 0;
  for (let at = 0; at < steps; at++) {
    const batch = await next();
    bytes += sizeOf(batch);
    await step(batch);
    training.step();
  }
  const { elapsedMs } = training.read();
  const reading = new StepMeter(clocks);
  for (let at = 0; at < steps; at++) await next();
  return {
    bytesPerSecond: 1_000 * bytes / elapsedMs,
    cpuMs: reading.read().cpuMs / steps,
    batch: first,
  };
}

function warmUpOf(steps: number): number {
  return Math.max(2, Math.ceil(WARM_UP_SHARE * steps));
}

function isEmpty(): LeatError {
  return new LeatError(
    "failed_precondition",
    "The dataset gives no elements: are its files there, does a filter leave anything?",
  );
}
