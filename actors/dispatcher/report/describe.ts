/** The dispatcher's state for people. */
import { UNNAMED_JOB_PREFIX } from "../jobs/join_checks.ts";
import {
  activityOf,
  bottleneckOf,
  type IterationFigures,
  optimalWorkers,
  type WorkerSigns,
} from "./diagnosis.ts";
import type { Iteration, Task, Worker } from "../state/entities.ts";
import type { Figures } from "./figures.ts";
import { parametersOf } from "../jobs/iterations.ts";
import type { JobParameters } from "../protocol.ts";
import type {
  ConsumerPosition,
  DispatcherDescription,
  TaskDescription,
  TaskRates,
} from "../protocol_figures.ts";
import type { ScalingDescription } from "../protocol_scaling.ts";
import { splitCount } from "../../../data/sharding/split_table.ts";
import type { DispatcherState } from "../state/state.ts";
import { whyStarved } from "./starvation.ts";

/** At most this many characters of a policy's function are shown. */
const POLICY_SHOWN_LENGTH = 60;

type JobDescription = DispatcherDescription["jobs"][number];
type IterationDescription = JobDescription["iterations"][number];
type WorkerDescription = DispatcherDescription["workers"][number];

/** Facts that are not part of the state. */
export interface SoftState {
  readonly figures: Figures;
  /** Monotonic time, and the offset from it to wall-clock time in ms since 1970. */
  readonly nowMs: number;
  readonly wallOffsetMs: number;
  /** When a live worker sent its last heartbeat, in monotonic time. */
  heardMs(worker: string): number | undefined;
  /** DETERMINISTIC: how many splits beyond the readers' common position may be assigned. */
  readonly windowSplits: number;
  /** Coordinated reads: the position of a consumer, if reported. */
  positionOf(clientId: number): ConsumerPosition | undefined;
  /** Why a worker's address does not answer; undefined if it does. */
  unreachable(worker: string): string | undefined;
  /** How long a worker has not reported although it was asked, in ms; undefined while it reports. */
  silentMs(worker: string): number | undefined;
  /** How long a client has not reported, in ms; undefined while it reports. */
  clientSilentMs(clientId: number): number | undefined;
  /** Whether the journal waits for disk space. */
  readonly journalWaits: boolean;
}

export function describeState(
  state: DispatcherState,
  soft: SoftState,
  scaling: ScalingDescription,
): DispatcherDescription {
  const iterations = [...state.iterations.values()];
  const unfinished = iterations.filter(({ finished }) => !finished);
  // A finished iteration with readers counts: its workers still serve elements.
  const hasJobs = iterations.some(({ finished, iterationId }) =>
    !finished || state.clientsOfIteration(iterationId).size > 0
  );
  const shared = unfinished.filter((iteration) => state.modeOf(iteration).hasFixedWorkers);
  return {
    clusterId: state.clusterId,
    scaling,
    workers: [...state.workers.values()].map((worker) => ({
      ...describeWorker(state, soft, worker, hasJobs),
      ...whyNoShard(state, shared, worker.name),
    })),
    jobs: [...state.jobs.values()].map(({ jobId, name, parameters }) => ({
      jobId,
      name: name ?? `${UNNAMED_JOB_PREFIX}${jobId} of one client)`,
      parameters: shownParameters(parameters),
      usage: soft.figures.ofJob(jobId),
      iterations: state.iterationsOfJob(jobId).map((iteration) =>
        describeIteration(state, soft, iteration)
      ),
    })),
  };
}

/** Parameters with a policy's long function shortened. */
function shownParameters(parameters: JobParameters): JobParameters {
  const { policy } = parameters;
  if (policy === undefined || policy.shard.length <= POLICY_SHOWN_LENGTH) return parameters;
  const shard = `${policy.shard.slice(0, POLICY_SHOWN_LENGTH).toWellFormed()}…`;
  return { ...parameters, policy: { ...policy, shard } };
}

function describeWorker(
  state: DispatcherState,
  soft: SoftState,
  { name, ref, tags, isPrivate, alive }: Worker,
  hasJobs: boolean,
): WorkerDescription {
  const tasks = [...state.tasksOfWorker(name)];
  const unreachable = soft.unreachable(name);
  const heardMs = soft.heardMs(name);
  const silentMs = soft.silentMs(name);
  const signs: WorkerSigns = {
    alive,
    silentMs,
    address: ref.node,
    unreachable,
    tasks: tasks.map((task) => {
      const iteration = state.iterations.get(task.iterationId)!;
      return {
        ...describeTask(soft.figures, task, iteration),
        hasReaders: state.clientsOfIteration(task.iterationId).size > 0,
        continues: state.modeOf(iteration).whenUnread(iteration) === "continues",
      };
    }),
    hasJobs,
  };
  return {
    name,
    ref,
    tags,
    ...(isPrivate ? { isPrivate } : {}),
    alive,
    ...(heardMs === undefined ? {} : { lastHeardMs: soft.wallOffsetMs + heardMs }),
    ...(unreachable === undefined ? {} : { unreachable }),
    tasks: tasks.length,
    activity: activityOf(signs),
    figures: silentMs === undefined ? soft.figures.ofWorker(name, soft.nowMs) : null,
  };
}

function describeIteration(
  state: DispatcherState,
  soft: SoftState,
  iteration: Iteration,
): IterationDescription {
  const { iterationId, repetition, finished, error } = iteration;
  const mode = state.modeOf(iteration);
  const splits = splitsOf(state, iteration);
  const isHandedOut = splits.length > 0 &&
    splits.every(({ handedOut, total }) => handedOut >= total);
  const current = currentOnly(soft, iterationFigures(state, soft, iteration));
  const figures = { ...current, isHandedOut };
  const { readers, tasks } = figures;
  return {
    iterationId,
    repetition,
    clients: readers.length,
    readers,
    tasks,
    bottleneck: bottleneckOf(figures),
    ...(figures.rounds === undefined ? {} : { rounds: figures.rounds }),
    optimalWorkers: optimalWorkers(figures),
    finished,
    ...(error === null ? {} : { failure: error.message }),
    ...mode.describe({ state, iteration }, tasks),
    splits,
  };
}

function splitsOf(state: DispatcherState, iteration: Iteration): IterationDescription["splits"] {
  const { splits } = iteration;
  const assigned = state.modeOf(iteration).assignedCount(iteration);
  return (splits?.cursors ?? []).map(({ repetition, next }, source) => ({
    repetition,
    handedOut: assigned ?? next,
    total: splitCount(splits!.bounds, source),
  }));
}

/** Without the last figures of members that do not report now. A failure is no matter of time. */
function currentOnly(soft: SoftState, figures: IterationFigures): IterationFigures {
  const silentMs = new Map<string, number>();
  const isSilent = (name: string, ms: number | undefined) => {
    if (ms !== undefined) silentMs.set(name, ms);
    return ms !== undefined;
  };
  const tasks = figures.tasks.map((task) => {
    const { worker } = task;
    const isOld = task.state !== "failed" && isSilent(`Worker "${worker}"`, soft.silentMs(worker));
    return isOld ? { ...task, figures: null } : task;
  });
  const readers = figures.readers.map((reader) => {
    const { clientId, consumerIndex } = reader;
    const name = consumerIndex === null ? `Client ${clientId}` : `Consumer ${consumerIndex}`;
    return isSilent(name, soft.clientSilentMs(clientId)) ? { ...reader, figures: null } : reader;
  });
  return { ...figures, tasks, readers, silentMs };
}

/** Why an iteration with fixed workers gives this worker nothing, if there is one. */
function whyNoShard(
  state: DispatcherState,
  shared: readonly Iteration[],
  worker: string,
): Pick<WorkerDescription, "noShard"> {
  for (const iteration of shared) {
    const noShard = state.modeOf(iteration).whyNothingFor({ state, iteration }, worker);
    if (noShard !== undefined) return { noShard };
  }
  return {};
}

export function iterationFigures(
  state: DispatcherState,
  soft: SoftState,
  iteration: Iteration,
): IterationFigures {
  const { iterationId, finished, error } = iteration;
  const { sharing } = parametersOf(state, iteration);
  const mode = state.modeOf(iteration);
  const rounds = mode.describeRounds({ state, iteration }, (clientId) => soft.positionOf(clientId));
  const tasks = [...state.tasksOfIteration(iterationId)];
  const unreachable = tasks.map(({ worker }) => worker)
    .filter((worker) => soft.unreachable(worker) !== undefined);
  return {
    tasks: [
      ...tasks.map((task) => describeTask(soft.figures, task, iteration)),
      ...endedTasks(state, iteration),
    ],
    readers: [...state.clientsOfIteration(iterationId)].map(({ clientId, consumerIndex }) => {
      const position = consumerIndex === null ? undefined : soft.positionOf(clientId);
      return {
        clientId,
        consumerIndex,
        ...(position === undefined ? {} : { position }),
        figures: soft.figures.ofClient(clientId),
      };
    }),
    finished,
    progress: mode.progress({ state, iteration }),
    failure: error?.message ?? null,
    starvation: whyStarved(
      state,
      iteration,
      state.clientsOfIteration(iterationId),
      (worker) => soft.figures.isDraining(worker),
    ),
    waiting: mode.whyWaiting({ state, iteration }, soft.windowSplits),
    sharing,
    ...(rounds === undefined ? {} : { rounds }),
    unreachable: new Set(unreachable),
    silentMs: new Map(),
    journalWaits: soft.journalWaits,
  };
}

function describeTask(figures: Figures, task: Task, iteration: Iteration): TaskDescription {
  const { taskId, worker } = task;
  const rates = figures.ofTask(worker, taskId);
  return {
    taskId,
    worker,
    state: stateOf(task, rates),
    figures: rates,
    ...runnerDeathsOf(iteration, taskId),
  };
}

function runnerDeathsOf(
  { deaths }: Iteration,
  taskId: number,
): Pick<TaskDescription, "runnerDeaths"> {
  const ends = deaths.flatMap(({ runners }) => runners.filter((death) => death.taskId === taskId));
  return ends.length === 0 ? {} : { runnerDeaths: ends.map(({ message }) => message) };
}

/** The ended tasks of a failed iteration whose runners died: workers no longer report them. */
function endedTasks(state: DispatcherState, iteration: Iteration): TaskDescription[] {
  if (iteration.error === null) return [];
  const workers = new Map<number, string>();
  for (const { taskId, worker } of iteration.deaths.flatMap(({ runners }) => runners)) {
    if (taskId !== null && !state.tasks.has(taskId)) workers.set(taskId, worker);
  }
  return [...workers].map(([taskId, worker]) => ({
    taskId,
    worker,
    state: "failed",
    figures: null,
    ...runnerDeathsOf(iteration, taskId),
  }));
}

function stateOf({ completed, source }: Task, figures: TaskRates | null): string {
  if (completed) return "completed";
  if (figures?.failure != null) return "failed";
  return source === null ? "starting" : "running";
}
