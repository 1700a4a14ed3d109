/**
 * Decides how many workers a cluster should have, for programs that start and stop workers. The
 * number rises at once and falls slowly. Workers work for all jobs that they may serve, so the most
 * demanding job decides: a worker's measured rate for it already includes the cost of the other
 * jobs.
 */
import { LeatError } from "../../../core/error.ts";
import { definedFields } from "../../../core/tree.ts";
import { JobScaler, type JobSigns } from "./job_scaler.ts";
import { SlidingMax } from "./sliding_max.ts";
import type { JobScaling, ScalingDescription } from "../protocol_scaling.ts";
import { WorkerPools } from "../jobs/worker_pools.ts";
import { countText } from "../../../data/amounts.ts";

/** Limits and times of scaling. */
export interface ScalingOptions {
  /** At least this many workers are wanted. Default 0; a job with readers always wants one. */
  readonly minWorkers?: number;
  /** At most this many workers are wanted. Default 1,000. */
  readonly maxWorkers?: number;
  /** Interval of observations, in ms. Default 5,000. */
  readonly intervalMs?: number;
  /** Window of rates, and wait after each change of workers, in ms. Default 10,000. */
  readonly measureMs?: number;
  /** Fewer workers are wanted once fewer have sufficed for this time, in ms. Default 120,000. */
  readonly downAfterMs?: number;
}

const SCALING_DEFAULTS: Required<ScalingOptions> = {
  minWorkers: 0,
  maxWorkers: 1_000,
  intervalMs: 5_000,
  measureMs: 10_000,
  downAfterMs: 120_000,
};

/**
 * The options with their defaults.
 * @throws {LeatError} `invalid_argument` for limits that are not whole numbers or in the wrong
 *   order, and for times that are not positive.
 */
export function checkScaling(options: ScalingOptions = {}): Required<ScalingOptions> {
  const settings = { ...SCALING_DEFAULTS, ...definedFields(options) };
  const { minWorkers, maxWorkers, ...times } = settings;
  const isLimit = (value: number) => Number.isInteger(value) && value >= 0;
  if (!isLimit(minWorkers) || !isLimit(maxWorkers) || maxWorkers < Math.max(1, minWorkers)) {
    throw new LeatError(
      "invalid_argument",
      `scaling: minWorkers is ${minWorkers} and maxWorkers ${maxWorkers}; they must be whole ` +
        "numbers, the first 0 or more, the second 1 or more and no less than the first",
    );
  }
  for (const [name, value] of Object.entries(times)) {
    if (value > 0) continue;
    throw new LeatError("invalid_argument", `scaling: ${name} is ${value}; it must be above 0`);
  }
  return settings;
}

export interface ClusterSigns {
  /** Reachable workers that count as alive. */
  readonly workers: number;
  /**
   * How many of them have reported since the dispatcher started. Some of the others may be dead.
   */
  readonly heard: number;
  /** Jobs with something left to produce that are read, or continue without readers. */
  readonly jobs: readonly JobSigns[];
}

/** Decides how many workers a cluster should have. */
export class Autoscaler {
  readonly #settings: Required<ScalingOptions>;
  readonly #scalers = new Map<number, { readonly series: string; readonly scaler: JobScaler }>();
  readonly #recent: SlidingMax;
  readonly #pools: WorkerPools;
  #beganMs: number | undefined;
  /** Number of workers at the start. */
  #initial = 0;

  constructor(options: ScalingOptions = {}) {
    this.#settings = checkScaling(options);
    this.#recent = new SlidingMax(this.#settings.downAfterMs);
    this.#pools = new WorkerPools(this.#settings.downAfterMs);
  }

  /** Decides from the current measurements. Times never decrease. */
  observe(nowMs: number, { workers, heard, jobs }: ClusterSigns): ScalingDescription {
    const { minWorkers, maxWorkers } = this.#settings;
    this.#countInitial(nowMs, workers, heard);
    const scaled = this.#observeJobs(nowMs, jobs);
    const now = Math.max(0, ...scaled.map((job) => job.wanted));
    const most = this.#recentMax(nowMs, now);
    const wanted = Math.min(maxWorkers, Math.max(minWorkers, most));
    const text = textOf({ workers, wanted, now, jobs: scaled, maxWorkers });
    const wants = jobs.map(({ pool }, index) => ({ pool, wanted: scaled[index]!.wanted }));
    const pools = this.#pools.observe(nowMs, wants);
    return { workers, wanted, minWorkers, maxWorkers, text, jobs: scaled, pools };
  }

  #observeJobs(nowMs: number, jobs: readonly JobSigns[]): JobScaling[] {
    const known = new Set(jobs.map(({ jobId }) => jobId));
    const resting: number[] = [];
    for (const [jobId, { scaler }] of this.#scalers) {
      if (known.has(jobId)) continue;
      if (scaler.rest(nowMs) < this.#settings.downAfterMs) resting.push(jobId);
      else this.#scalers.delete(jobId);
    }
    return jobs.map((signs) => this.#scalerFor(signs, resting).observe(nowMs, signs));
  }

  /** The scaler of a job. A new job continues with that of a resting one of its series. */
  #scalerFor({ jobId, series }: JobSigns, resting: readonly number[]): JobScaler {
    const isBefore = (id: number) => this.#scalers.get(id)?.series === series;
    const before = this.#scalers.has(jobId) ? undefined : resting.find(isBefore);
    const scaler = this.#scalers.get(before ?? jobId)?.scaler ??
      new JobScaler(this.#settings.measureMs);
    if (before !== undefined) this.#scalers.delete(before);
    this.#scalers.set(jobId, { series, scaler });
    return scaler;
  }

  /**
   * Counts the workers at the start, which report within the first rate window. Later workers do
   * not count: otherwise a dead worker and its replacement would both count for a while.
   */
  #countInitial(nowMs: number, workers: number, heard: number): void {
    if (this.#beganMs === undefined) {
      this.#beganMs = nowMs;
      this.#initial = workers;
    } else if (nowMs - this.#beganMs < this.#settings.measureMs) {
      this.#initial = Math.max(this.#initial, heard);
    }
  }

  /** The recent maximum. In the first `downAfterMs` at least the number of workers at the start. */
  #recentMax(nowMs: number, now: number): number {
    const { downAfterMs } = this.#settings;
    const most = this.#recent.note(nowMs, now);
    return nowMs - this.#beganMs! < downAfterMs ? Math.max(most, this.#initial) : most;
  }
}

function textOf({ workers, wanted, now, jobs, maxWorkers }: {
  readonly workers: number;
  readonly wanted: number;
  /** The number wanted without the slow decrease and without limits. */
  readonly now: number;
  readonly jobs: readonly JobScaling[];
  readonly maxWorkers: number;
}): string {
  const head = `${countText(wanted, "worker")} wanted` +
    (wanted === workers ? "" : `, ${workers} there`);
  if (jobs.length === 0) return `${head}: nobody reads a job that has anything to produce.`;
  const mostDemanding = jobs.reduce((a, b) => b.wanted > a.wanted ? b : a);
  const limit = now > maxWorkers ? `; ${now} would do, but maxWorkers is ${maxWorkers}` : "";
  const isKnown = mostDemanding.kind !== "unknown";
  const falling = isKnown && now < wanted && workers > now ? `; if that lasts, ${now} will do` : "";
  return `${head}: ${mostDemanding.text}${limit}${falling}.`;
}
