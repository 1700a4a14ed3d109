/**
 * The life of an iteration: its tasks are made, end or complete; it finishes; it is forgotten.
 *
 * In most modes an iteration finishes when none of its tasks has anything left to produce and at least
 * one has produced everything. So one whose workers have all died waits for a worker, and a task that
 * completed counts although its worker dies later.
 *
 * @module
 */
import { LeatError, type WireError } from "../../../core/error.ts";
import type { Iteration, Task } from "../state/entities.ts";
import { datasetOf } from "./datasets.ts";
import { type JobParameters, TASK_ENDED, type TaskDefinition } from "../protocol.ts";
import type { TaskEnd } from "../journal/records.ts";
import type { DispatcherState } from "../state/state.ts";
import type { Turn } from "../turn.ts";

/** The parameters of an iteration's job. */
export function parametersOf(state: DispatcherState, { jobId }: Iteration): JobParameters {
  return state.jobs.get(jobId)!.parameters;
}

/** Gives the worker a task of the iteration, unless it has one or the iteration is done. */
export function createTask(turn: Turn, iteration: Iteration, worker: string): void {
  const { state } = turn;
  const { iterationId } = iteration;
  const mode = state.modeOf(iteration);
  if (iteration.finished || !mode.hasWorkFor({ state, iteration }, worker)) return;
  if (state.taskAt(iterationId, worker) !== undefined) return;
  const seed = mode.seedForTask(iteration, turn.random);
  turn.commit({ type: "task_created", taskId: state.nextTaskId, iterationId, worker, seed });
}

/** Fences a task. */
export function endTask(turn: Turn, { taskId }: Task, why: TaskEnd): void {
  turn.commit({ type: "task_ended", taskId, why });
}

/** Finishes the iteration if nothing more will come of it. */
export function finishIfDone(turn: Turn, iterationId: number): void {
  const { state } = turn;
  const iteration = state.iterations.get(iterationId);
  if (iteration === undefined || iteration.finished) return;
  if (!state.modeOf(iteration).isDone({ state, iteration })) return;
  turn.commit({ type: "iteration_finished", iterationId });
}

/** The iteration cannot go on: its clients are told why, and its tasks end. */
export function failIteration(turn: Turn, iteration: Iteration, error: WireError): void {
  const { iterationId } = iteration;
  turn.commit({ type: "iteration_failed", iterationId, error });
  if (!turn.state.modeOf(iteration).endsFailedTasks) return;
  if (!iteration.finished) turn.commit({ type: "iteration_finished", iterationId });
  for (const task of [...turn.state.tasksOfIteration(iterationId)]) {
    endTask(turn, task, "iteration_failed");
  }
}

/** Forgets an iteration, and releases its clients. */
export function forgetIteration(turn: Turn, { iterationId }: Iteration): void {
  for (const { clientId } of [...turn.state.clientsOfIteration(iterationId)]) {
    turn.commit({ type: "client_released", clientId, why: "released", nextRound: null });
  }
  turn.commit({ type: "iteration_collected", iterationId });
}

/**
 * A task that somebody speaks of, and its iteration.
 *
 * @param refused What follows for the speaker where there is none.
 */
export function taskInForce(
  { tasks, iterations }: DispatcherState,
  taskId: number,
  refused: string,
): [Task, Iteration] {
  const task = tasks.get(taskId);
  const iteration = iterations.get(task?.iterationId ?? -1);
  if (task !== undefined && iteration !== undefined) return [task, iteration];
  throw new LeatError("failed_precondition", `Task ${taskId} has ended: ${refused}`, {
    details: { reason: TASK_ENDED },
  });
}

/** What a worker needs to know to run the task. */
export function definitionOf(state: DispatcherState, task: Task): TaskDefinition {
  const iteration = state.iterations.get(task.iterationId);
  if (iteration === undefined) {
    throw new LeatError("internal", `Task ${task.taskId} belongs to no iteration`);
  }
  const parameters = parametersOf(state, iteration);
  const shard = state.modeOf(iteration).shardOf({ state, iteration }, task.worker);
  return {
    taskId: task.taskId,
    iterationId: iteration.iterationId,
    jobId: iteration.jobId,
    dataset: datasetOf(state, parameters.datasetId),
    parameters,
    repetition: iteration.repetition,
    seed: task.seed,
    ...(shard === undefined ? {} : { shard }),
  };
}
