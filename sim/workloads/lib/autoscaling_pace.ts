/**
 * The pace of an autoscaling run. Its steps, phases and waits scale with the drawn times of scaling, so
 * that workers start and stop while trainers read, however slowly the dispatcher decides.
 */
import type { ScalingOptions } from "../../../actors/dispatcher/scaling/autoscaler.ts";

/** Work per element while trainers change their speed, in ms. */
const WORK_MS = 1_000;
/**
 * Elements that a worker makes in one measure under the constant load. With fewer elements, rates would
 * be rough.
 */
const STEADY_ELEMENTS = 8;
/** The constant load takes as many elements as this number of workers makes. */
export const STEADY_WORKERS_MIN = 2;
/** A step of the constant load, as a share of the work per element. */
const STEADY_STEP_WORK = 1 / STEADY_WORKERS_MIN;
/** The constant load never needs more workers than this. */
export const STEADY_WORKERS = 3;

/**
 * Maximum training step while all trainers are fast, and minimum of the longest step while all are slow,
 * in ms.
 */
const FAST_STEP_MAX_MS = 300;
const SLOW_STEP_MAX_MS = 5_000;
/** The longest slow step, as a share of the time until the scaler stops workers (`downAfterMs`). */
const SLOW_STEP_SHARE = 1 / 3;
/** Number of measures for which all trainers are fast. */
const FAST_MEASURES = 2;
/** All trainers are slow for `downAfterMs` and this much longer, in ms. */
const SLOW_EXTRA_MS = 10_000;

/**
 * The number of workers has settled after this many looks in a row without a change, this many measures
 * (rates are rough while clients fill their buffers), and this many times `downAfterMs`.
 */
const SETTLED_LOOKS = 16;
const SETTLED_MEASURES = 4;
const SETTLED_DOWNS = 2;
/** A scaler that got an answer must look again within this many intervals. */
const LOOK_INTERVALS = 1.5;
/** After a restart the run checks for this many times the longest delay until a change. */
const RESTART_TIMES = 2;
/**
 * Time to drain a stopping worker: `DRAIN_MS`, and this many of the longest steps, in which clients
 * fetch.
 */
const DRAIN_MS = 10_000;
const DRAIN_STEPS = 0.6;
/** Number of the longest steps within which a healed cluster must finish. */
const LIVENESS_STEPS = 60;

/** The times of a run, in ms. */
export interface AutoscalingPace {
  /** Work per element: while trainers change their speed, and under the constant load. */
  readonly workMs: { readonly changing: number; readonly steady: number };
  /** A step of the constant load. */
  readonly steadyStepMs: number;
  /** Longest other training step, while all are fast and while all are slow. */
  readonly stepMaxMs: { readonly fast: number; readonly slow: number };
  /** Length of each phase. The phases alternate. */
  readonly fastMs: number;
  readonly slowMs: number;
  /** How long a settled scaler must change nothing. */
  readonly settledMs: number;
  /**
   * Time within which a scaler that got an answer must look again, because changes come in steps.
   */
  readonly lookWithinMs: number;
  readonly describeTimeoutMs: number;
  /** How long the run checks after a restart of the dispatcher. */
  readonly afterRestartMs: number;
  readonly drainMs: number;
  /** Time within which a healed cluster must finish. */
  readonly livenessMaxMs: number;
}

/** Computes the pace for the given times of scaling. */
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
