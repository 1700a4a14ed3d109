/**
 * The dispatcher's state for people.
 *
 * @module
 */
import type { Iteration, Task } from "./entities.ts";
import type { DispatcherDescription } from "./protocol.ts";
import { splitCount } from "./split_table.ts";
import type { DispatcherState } from "./state.ts";

type JobDescription = DispatcherDescription["jobs"][number];
type IterationDescription = JobDescription["iterations"][number];

/** What is known of a worker and is not in the state. */
export interface WorkerNews {
  /** When it was last heard of, in wall-clock ms since 1970. */
  readonly lastHeardMs: number;
  /** Why its address does not answer, if it does not. */
  readonly unreachable?: string;
}

/** @param newsOf What is known of a worker beside the state. */
export function describeState(
  state: DispatcherState,
  newsOf: (worker: string) => WorkerNews,
): DispatcherDescription {
  return {
    clusterId: state.clusterId,
    workers: [...state.workers.values()].map(({ name, ref, tags, alive }) => ({
      name,
      ref,
      tags,
      alive,
      ...newsOf(name),
      tasks: state.tasksOfWorker(name).size,
    })),
    jobs: [...state.jobs.values()].map(({ jobId, name, parameters }) => ({
      jobId,
      name: name ?? `(job ${jobId} of one client)`,
      parameters,
      iterations: state.iterationsOfJob(jobId).map((iteration) =>
        describeIteration(state, iteration)
      ),
    })),
  };
}

function describeIteration(state: DispatcherState, iteration: Iteration): IterationDescription {
  const { iterationId, repetition, finished, splits } = iteration;
  return {
    iterationId,
    repetition,
    clients: state.clientsOfIteration(iterationId).size,
    tasks: [...state.tasksOfIteration(iterationId)].map((task) => ({
      taskId: task.taskId,
      worker: task.worker,
      state: describeTask(task),
    })),
    finished,
    splits: (splits?.cursors ?? []).map((cursor, source) => ({
      repetition: cursor.repetition,
      handedOut: cursor.next,
      total: splitCount(splits!.bounds, source),
    })),
  };
}

function describeTask({ completed, source }: Task): string {
  if (completed) return "completed";
  return source === null ? "starting" : "running";
}
