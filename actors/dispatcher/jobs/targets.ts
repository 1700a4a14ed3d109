/**
 * Which workers serve which clients: a job may want the workers of each client's own process alone, or
 * those that carry some tags, and a worker may serve its own process alone.
 *
 * A worker that nobody of an iteration may read has no task of it, so that no split is lost to it.
 *
 * @module
 */
import { LOCAL_ONLY_TAG } from "../../../data/service/target_workers.ts";
import type { Client, Iteration, Worker } from "../state/entities.ts";
import { createTask, endTask, finishIfDone, parametersOf } from "./iterations.ts";
import type { JobParameters } from "../protocol.ts";
import type { DispatcherState } from "../state/state.ts";
import type { Transaction } from "../transaction.ts";

/** Whether a client of a job may read a worker. Null: a client whose process runs no worker. */
export function mayRead(
  { targetWorkers, targetTags = [], numConsumers }: Pick<
    JobParameters,
    "targetWorkers" | "targetTags" | "numConsumers"
  >,
  client: Pick<Client, "process"> | null,
  { tags, process, isPrivate }: Pick<Worker, "tags" | "process" | "isPrivate">,
): boolean {
  if (!targetTags.every((tag) => tags.includes(tag))) return false;
  // In a round all consumers read one task.
  if (numConsumers !== undefined) return !isPrivate;
  if (client?.process != null && client.process === process) return true;
  if (isPrivate || targetWorkers === "local") return false;
  return targetWorkers === "any" || !tags.includes(LOCAL_ONLY_TAG);
}

/** Whether the worker is to have a task of the iteration. */
export function isServedBy(state: DispatcherState, iteration: Iteration, worker: Worker): boolean {
  const parameters = parametersOf(state, iteration);
  if (mayRead(parameters, null, worker)) return true;
  // Whom not everybody may read is read by clients of its process alone.
  if (worker.process === null) return false;
  for (const client of state.clientsOfIteration(iteration.iterationId)) {
    if (mayRead(parameters, client, worker)) return true;
  }
  return false;
}

/** A client has come: workers that it may read get their tasks, as far as they have none. */
export function serveNewClient(tx: Transaction, client: Client): void {
  const iteration = tx.state.iterations.get(client.iterationId)!;
  const parameters = parametersOf(tx.state, iteration);
  for (const worker of tx.state.workersOfProcess(client.process)) {
    // Those that everybody may read have had theirs from the beginning.
    const isItsOwn = !mayRead(parameters, null, worker) && mayRead(parameters, client, worker);
    if (worker.alive && isItsOwn) createTask(tx, iteration, worker.name);
  }
}

/** A client has gone: tasks that nobody can read any more end. */
export function endUnread(tx: Transaction, iteration: Iteration, client: Client): void {
  const { state } = tx;
  // Those of other processes have the readers that they had.
  for (const worker of state.workersOfProcess(client.process)) {
    const task = state.taskAt(iteration.iterationId, worker.name);
    if (task === undefined || isServedBy(state, iteration, worker)) continue;
    endTask(tx, task, "unread");
    finishIfDone(tx, iteration.iterationId);
  }
}
