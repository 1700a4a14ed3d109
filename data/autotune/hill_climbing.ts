/**
 * Searches for the settings, within budgets, with which a pipeline keeps up with its consumer and
 * has the lowest output latency. It starts with the lowest settings. In each step it raises the
 * setting that helps most, until no setting helps.
 */
import type { Knob } from "./knob.ts";
import { bufferedBytes, outputLatencyMs, overloadMs, type Stage } from "./model.ts";

/** A step must shorten the time from one element to the next by at least this share. */
const GAIN_MIN = 0.01;

/** If a pipeline is too slow, its slowest stage decides: overload counts much more than latency. */
const OVERLOAD_WEIGHT = 10;

/** What a pipeline may use. */
export interface Budgets {
  /** How many calls may be in flight, over all tuned operators. */
  readonly cpu: number;
  /** How many bytes all tuned buffers may hold. */
  readonly ramBytes: number;
}

/** Sets `knobs`, which are settings of stages of `root`; `consumed` as for `outputLatencyMs()`. */
export function climb(
  root: Stage,
  knobs: readonly Knob[],
  consumed: number,
  budgets: Budgets,
): void {
  for (const knob of knobs) knob.value = knob.min;
  for (const knob of knobs) {
    while (knob.value > 1 && bufferedBytes(root) > budgets.ramBytes) knob.value--;
  }
  const consumerMs = 1_000 / consumed;
  const costMs = () =>
    outputLatencyMs(root, consumed) + OVERLOAD_WEIGHT * overloadMs(root, consumerMs);
  let bestMs = costMs();
  for (;;) {
    const step = bestStep(root, knobs, costMs, budgets);
    if (step === undefined || bestMs - step.costMs < GAIN_MIN * (consumerMs + bestMs)) return;
    step.knob.value++;
    bestMs = step.costMs;
  }
}

interface Step {
  readonly knob: Knob;
  readonly costMs: number;
}

function bestStep(
  root: Stage,
  knobs: readonly Knob[],
  costMs: () => number,
  budgets: Budgets,
): Step | undefined {
  let best: Step | undefined;
  for (const knob of knobs) {
    if (knob.value >= knob.max) continue;
    knob.value++;
    if (isWithin(root, knobs, knob, budgets)) {
      const step = { knob, costMs: costMs() };
      if (best === undefined || step.costMs < best.costMs) best = step;
    }
    knob.value--;
  }
  return best;
}

/** Whether the value of `raised` is within budgets. A buffer may grow even if calls exceed theirs. */
function isWithin(
  root: Stage,
  knobs: readonly Knob[],
  raised: Knob,
  { cpu, ramBytes }: Budgets,
): boolean {
  const calls = knobs.filter(({ parameter }) => parameter === "numParallelCalls");
  const fits = !calls.includes(raised) || calls.reduce((sum, { value }) => sum + value, 0) <= cpu;
  return fits && bufferedBytes(root) <= ramBytes;
}
