/**
 * Searches the settings with the lowest output latency, within budgets: from the lowest settings
 * on, it raises whichever setting helps most, until none helps any more.
 */
import type { Knob } from "./knob.ts";
import { bufferedBytes, outputLatencyMs, type Stage } from "./model.ts";

/** A step must shorten the time from one element to the next by at least this share. */
const GAIN_MIN = 0.01;

/** What a pipeline may use. */
export interface Budgets {
  /** How many calls may be in flight, over all tuned operators. */
  readonly cpu: number;
  /** How many bytes all tuned buffers may hold. */
  readonly ramBytes: number;
}

/** Sets `knobs`, which are settings of stages of `root`; returns the expected latency in ms. */
export function climb(
  root: Stage,
  knobs: readonly Knob[],
  consumed: number,
  budgets: Budgets,
): number {
  for (const knob of knobs) knob.value = knob.min;
  const consumerMs = 1_000 / consumed;
  let latencyMs = outputLatencyMs(root, consumed);
  for (;;) {
    const step = bestStep(root, knobs, consumed, budgets);
    if (step === undefined) return latencyMs;
    if (latencyMs - step.latencyMs < GAIN_MIN * (consumerMs + latencyMs)) return latencyMs;
    step.knob.value++;
    latencyMs = step.latencyMs;
  }
}

interface Step {
  readonly knob: Knob;
  readonly latencyMs: number;
}

function bestStep(
  root: Stage,
  knobs: readonly Knob[],
  consumed: number,
  budgets: Budgets,
): Step | undefined {
  let best: Step | undefined;
  for (const knob of knobs) {
    if (knob.value >= knob.max) continue;
    knob.value++;
    if (isWithin(root, knobs, budgets)) {
      const latencyMs = outputLatencyMs(root, consumed);
      if (best === undefined || latencyMs < best.latencyMs) best = { knob, latencyMs };
    }
    knob.value--;
  }
  return best;
}

function isWithin(root: Stage, knobs: readonly Knob[], { cpu, ramBytes }: Budgets): boolean {
  const calls = knobs.reduce(
    (sum, { parameter, value }) => parameter === "numParallelCalls" ? sum + value : sum,
    0,
  );
  return calls <= cpu && bufferedBytes(root) <= ramBytes;
}
