/**
 * How fast an autoscaling run goes: its steps, turns and waits are as long as the times of scaling ask
 * for, so that workers come and go while trainers read, however slowly the dispatcher makes up its mind.
 *
 * @module
 */
import type { ScalingOptions } from "../actors/dispatcher/autoscaler.ts";

/** What an element costs a worker while trainers are now fast, now slow, in ms. */
const WORK_MS = 1_000;
/** Under the constant load a worker makes so many while rates are taken: of fewer, these would be rough. */
const STEADY_ELEMENTS = 8;
/** A step of the constant load takes so much of what an element costs, and so wants so many workers. */
const STEADY_STEP_WORK = 0.5;
export const STEADY_WORKERS = 3;

/** How long a training step takes at most where all are fast, and where all are slow at least, in ms. */
const FAST_STEP_MAX_MS = 300;
const SLOW_STEP_MAX_MS = 5_000;
/** The longest slow step is so large a part of the time after which fewer workers are wanted. */
const SLOW_STEP_SHARE = 1 / 3;
/** For how many measures all are fast. */
const FAST_MEASURES = 2;
/** Beside the time after which fewer are wanted, all are slow for so long, in ms. */
const SLOW_EXTRA_MS = 10_000;

/**
 * The number has settled when it was as wanted in so many looks in a row, for as many measures (rates are
 * rough while clients fill their buffers), and for so many times the time after which fewer are wanted.
 */
const SETTLED_LOOKS = 16;
const SETTLED_MEASURES = 4;
const SETTLED_DOWNS = 2;
/** A scaler that was answered looks again within so many of its intervals. */
const LOOK_INTERVALS = 1.5;
/** After a restart is looked for so many times what takes longest until something else is wanted. */
const RESTART_TIMES = 2;
/**
 * A worker that is stopped has so long, as by default, and so many of the longest steps beside that in
 * which clients fetch.
 */
const DRAIN_MS = 10_000;
const DRAIN_STEPS = 0.6;
/** A healed cluster has so many of them to get done. */
const LIVENESS_STEPS = 60;

/** See the module. Times are in ms. */
export interface AutoscalingPace {
  /** What an element costs a worker: while trainers are now fast, now slow, and under the constant load. */
  readonly workMs: { readonly changing: number; readonly steady: number };
  /** A step of the constant load. */
  readonly steadyStepMs: number;
  /** How long another training step takes at most where all are fast, and where all are slow. */
  readonly stepMaxMs: { readonly fast: number; readonly slow: number };
  /** For how long they are each in turn. */
  readonly fastMs: number;
  readonly slowMs: number;
  /** For how long a scaler changes nothing whose number of workers has settled. */
  readonly settledMs: number;
  /** A scaler that was answered looks again within so long: what is wanted moves by steps. */
  readonly lookWithinMs: number;
  readonly describeTimeoutMs: number;
  /** For how long is looked after a restart of the dispatcher. */
  readonly afterRestartMs: number;
  readonly drainMs: number;
  /** Within which a healed cluster must get done. */
  readonly livenessMaxMs: number;
}

/** The pace for these times of scaling. */
export function autoscalingPace(
  { intervalMs, measureMs, downAfterMs }: Required<ScalingOptions>,
): AutoscalingPace {
  const slowStepMaxMs = Math.max(SLOW_STEP_MAX_MS, SLOW_STEP_SHARE * downAfterMs);
  const steadyWorkMs = measureMs / STEADY_ELEMENTS;
  return {
    workMs: { changing: WORK_MS, steady: steadyWorkMs },
    steadyStepMs: STEADY_STEP_WORK * steadyWorkMs,
    stepMaxMs: { fast: FAST_STEP_MAX_MS, slow: slowStepMaxMs },
    fastMs: FAST_MEASURES * measureMs,
    slowMs: downAfterMs + SLOW_EXTRA_MS,
    settledMs: Math.max(
      SETTLED_LOOKS * intervalMs,
      SETTLED_MEASURES * measureMs,
      SETTLED_DOWNS * downAfterMs,
    ),
    lookWithinMs: LOOK_INTERVALS * intervalMs,
    describeTimeoutMs: intervalMs,
    afterRestartMs: RESTART_TIMES * Math.max(downAfterMs, measureMs),
    drainMs: DRAIN_MS + DRAIN_STEPS * slowStepMaxMs,
    livenessMaxMs: LIVENESS_STEPS * slowStepMaxMs,
  };
}
