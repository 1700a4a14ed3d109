/** Observes the dispatcher's jobs periodically for the autoscaler. */
import { Autoscaler, checkScaling, type ClusterSigns, type ScalingOptions } from "./autoscaler.ts";
import { iterationFigures, type SoftState } from "../report/describe.ts";
import { hasWork, type IterationFigures, ratesOf } from "../report/diagnosis.ts";
import type { Job } from "../state/entities.ts";
import type { JobRates, JobSigns } from "./job_scaler.ts";
import type { TaskDescription } from "../protocol_figures.ts";
import type { ScalingDescription } from "../protocol_scaling.ts";
import type { DispatcherState } from "../state/state.ts";
import { seriesOf } from "../jobs/series.ts";
import { wantedOf } from "../report/starvation.ts";
import { definedFields } from "../../../core/tree.ts";

/** Figures older than this many observation intervals are ignored, because they may be outdated. */
const STALE_LOOKS = 3;

/** Feeds the autoscaler with measurements of the dispatcher. */
export class Scaling {
  readonly intervalMs: number;
  /** Figures older than this are not used, in ms. */
  readonly staleMs: number;
  readonly #autoscaler: Autoscaler;
  #description: ScalingDescription | undefined;

  constructor(options?: ScalingOptions) {
    const { intervalMs, measureMs } = checkScaling(options);
    this.intervalMs = intervalMs;
    this.staleMs = Math.max(measureMs, STALE_LOOKS * intervalMs);
    this.#autoscaler = new Autoscaler(options);
  }

  /** Observes all jobs once. Returns whether there are jobs to scale. */
  observe(state: DispatcherState, soft: SoftState): boolean {
    const signs = signsOf(state, soft, this.staleMs);
    this.#description = this.#autoscaler.observe(soft.nowMs, signs);
    return signs.jobs.length > 0;
  }

  /** The last decision. */
  describe(state: DispatcherState, soft: SoftState): ScalingDescription {
    if (this.#description === undefined) this.observe(state, soft);
    return this.#description!;
  }
}

function signsOf(state: DispatcherState, soft: SoftState, staleMs: number): ClusterSigns {
  const workers = [...state.workers.values()].filter(({ name, alive, isPrivate }) =>
    alive && !isPrivate && soft.unreachable(name) === undefined
  );
  return {
    workers: workers.length,
    heard: workers.filter(({ name }) => soft.figures.ofWorker(name, soft.nowMs) !== null).length,
    jobs: [...state.jobs.values()]
      // No autoscaler can start workers in the trainer's own process.
      .filter(({ parameters }) => parameters.targetWorkers !== "local")
      .flatMap((job) => signsOfJob(state, soft, job, staleMs)),
  };
}

function signsOfJob(
  state: DispatcherState,
  soft: SoftState,
  { jobId, name, workers, parameters }: Job,
  staleMs: number,
): JobSigns[] {
  const active = state.iterationsOfJob(jobId)
    .map((iteration) => iterationFigures(state, soft, iteration))
    .filter(({ readers, tasks, finished, progress }) =>
      (readers.length > 0 || progress !== null) &&
      (tasks.some(serves) ||
        // Completed tasks do not end a static job: listed workers that are missing have shares.
        !finished && (tasks.length === 0 || tasks.some(hasWork) || workers !== null))
    );
  // While clients change repetitions, the iteration with the most readers represents the job.
  const [iteration] = active.sort((a, b) => b.readers.length - a.readers.length);
  if (iteration === undefined) return [];
  const serving = servingOf(state, iteration);
  const { figures, nowMs } = soft;
  const isStale = serving.tasks.some(({ worker }) => figures.ageMs(worker, nowMs) > staleMs) ||
    serving.readers.some(({ clientId }) => figures.clientAgeMs(clientId, nowMs) > staleMs);
  const { targetWorkers, targetTags, numConsumers } = parameters;
  const isStarved = iteration.starvation !== null && state.workersAlive > 0;
  return [{
    jobId,
    series: seriesOf(state, jobId),
    name: name ?? `${jobId}`,
    serving: serving.tasks.length,
    shares: workers?.length ?? null,
    pool: {
      ...definedFields({ targetWorkers, targetTags, numConsumers }),
      ...(workers === null ? {} : { names: workers }),
    },
    sought: isStarved ? wantedOf(parameters) : null,
    rates: isStale ? null : jobRates(serving),
    isFilling: serving.tasks.some(isFilling),
    usable: usableBy(serving),
  }];
}

/** The iteration with only the tasks that serve of reachable workers that are not private. */
function servingOf(state: DispatcherState, iteration: IterationFigures): IterationFigures {
  const tasks = iteration.tasks.filter((task) =>
    serves(task) && !iteration.unreachable.has(task.worker) &&
    state.workers.get(task.worker)?.isPrivate !== true
  );
  return { ...iteration, tasks };
}

/**
 * Whether a task runs, or has completed of late. Workers may produce a short epoch long before its
 * trainer has read it.
 */
function serves({ state, figures }: TaskDescription): boolean {
  return state === "running" ||
    state === "completed" && (figures?.elementsPerSecond ?? 0) > 0;
}

/** Whether a task works and has produced nothing yet, nor has the one before it of late. */
function isFilling({ figures }: TaskDescription): boolean {
  return figures !== null && figures.produced === 0 && (figures.elementsPerSecond ?? 0) <= 0 &&
    figures.busyShare !== 0;
}

/** How many workers the clients that offload could use together; undefined if none offloads. */
function usableBy({ readers }: IterationFigures): number | undefined {
  const reported = readers.flatMap(({ figures }) => figures?.offloadWorkers ?? []);
  return reported.length === 0 ? undefined : reported.reduce((sum, workers) => sum + workers, 0);
}

function jobRates(iteration: IterationFigures): JobRates | null {
  const { tasks, readers, sharing } = iteration;
  const rates = ratesOf(iteration);
  const busyShares = tasks.flatMap(({ figures }) => figures?.busyShare ?? []);
  const waitingShares = readers.flatMap(({ figures }) => figures?.waitingShare ?? []);
  const delivered = readers.flatMap(({ figures }) => figures?.elementsPerSecond ?? []);
  const isWhole = busyShares.length === tasks.length && waitingShares.length === readers.length;
  if (rates === null || !isWhole) return null;
  return {
    ...rates,
    waitingShare: mean(waitingShares),
    busyShare: mean(busyShares),
    delivered: sharing ? Math.max(...delivered) : delivered.reduce((sum, one) => sum + one, 0),
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
