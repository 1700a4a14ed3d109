/**
 * The life cycle of an iteration. In most modes it finishes when at least one task was completed and
 * no task is still to produce anything. If all workers die before that, it waits for a worker. A
 * completed task counts even if its worker dies later.
 */
import { LeatError, type WireError } from "../../../core/error.ts";
import type { Iteration, Task } from "../state/entities.ts";
import { datasetOf } from "./datasets.ts";
import { type JobParameters, TASK_ENDED, type TaskDefinition } from "../protocol.ts";
import type { TaskEnd } from "../journal/records.ts";
import type { DispatcherState } from "../state/state.ts";
import type { Transaction } from "../transaction.ts";

export function parametersOf(state: DispatcherState, { jobId }: Iteration): JobParameters {
  return state.jobs.get(jobId)!.parameters;
}

/**
 * Gives the worker a task of the iteration, unless it has one, the iteration is done, or the worker
 * is still `unheard`.
 */
export function createTask(tx: Transaction, iteration: Iteration, worker: string): void {
  const { state } = tx;
  const { iterationId } = iteration;
  const mode = state.modeOf(iteration);
  if (iteration.finished || !mode.hasWorkFor({ state, iteration }, worker)) return;
  if (state.taskAt(iterationId, worker) !== undefined) return;
  if (tx.unheard.has(worker) && !mode.hasFixedWorkers) return;
  const seed = mode.seedForTask(iteration, tx.random);
  tx.append({ type: "task_created", taskId: state.nextId("task"), iterationId, worker, seed });
}

export function endTask(tx: Transaction, { taskId }: Task, why: TaskEnd): void {
  tx.append({ type: "task_ended", taskId, why });
}

/** Finishes the iteration if it will produce nothing more. */
export function finishIfDone(tx: Transaction, iterationId: number): void {
  const { state } = tx;
  const iteration = state.iterations.get(iterationId);
  if (iteration === undefined || iteration.finished) return;
  if (!state.modeOf(iteration).isDone({ state, iteration })) return;
  tx.append({ type: "iteration_finished", iterationId });
}

/** Fails the iteration: its clients get the error, and in most modes its tasks end. */
export function failIteration(tx: Transaction, iteration: Iteration, error: WireError): void {
  const { iterationId } = iteration;
  tx.append({ type: "iteration_failed", iterationId, error });
  if (!tx.state.modeOf(iteration).endsFailedTasks) return;
  if (!iteration.finished) tx.append({ type: "iteration_finished", iterationId });
  endTasksOf(tx, iteration, "iteration_failed");
}

export function endTasksOf(tx: Transaction, { iterationId }: Iteration, why: TaskEnd): void {
  for (const task of [...tx.state.tasksOfIteration(iterationId)]) endTask(tx, task, why);
}

export function forgetIteration(tx: Transaction, { iterationId }: Iteration): void {
  for (const { clientId } of [...tx.state.clientsOfIteration(iterationId)]) {
    tx.append({ type: "client_released", clientId, why: "released", nextRound: null });
  }
  tx.append({ type: "iteration_collected", iterationId });
}

/**
 * The task of a request, and its iteration.
 * @param consequence The end of the error's message, for a task that has ended.
 * @throws {LeatError} `failed_precondition` if the task has ended or is unknown.
 */
export function existingTask(
  { tasks, iterations }: DispatcherState,
  taskId: number,
  consequence: string,
): [Task, Iteration] {
  const task = tasks.get(taskId);
  const iteration = iterations.get(task?.iterationId ?? -1);
  if (task !== undefined && iteration !== undefined) return [task, iteration];
  throw new LeatError("failed_precondition", `Task ${taskId} has ended: ${consequence}`, {
    details: { reason: TASK_ENDED },
  });
}

/** The definition from which a worker runs the task. */
export function taskDefinition(state: DispatcherState, task: Task): TaskDefinition {
  const iteration = state.iterations.get(task.iterationId);
  if (iteration === undefined) {
    throw new LeatError("internal", `Task ${task.taskId} belongs to no iteration`);
  }
  const { owner, parameters } = state.jobs.get(iteration.jobId)!;
  const shard = state.modeOf(iteration).shardOf({ state, iteration }, task.worker);
  return {
    clusterId: state.clusterId,
    taskId: task.taskId,
    iterationId: iteration.iterationId,
    jobId: iteration.jobId,
    owner,
    dataset: datasetOf(state, parameters.datasetId),
    parameters,
    repetition: iteration.repetition,
    seed: task.seed,
    ...(shard === undefined ? {} : { shard }),
  };
}
