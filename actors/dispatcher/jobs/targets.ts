/**
 * Which workers serve which clients. A job may want only workers of the client's process, or only
 * those with certain tags. Some workers serve only clients of their own process. A worker that no
 * client of an iteration may read gets no task of it.
 */
import { LOCAL_ONLY_TAG } from "../../../data/service/reading_choices.ts";
import type { Client, Iteration, Worker } from "../state/entities.ts";
import { createTask, endTask, finishIfDone, parametersOf } from "./iterations.ts";
import type { JobParameters } from "../protocol.ts";
import type { DispatcherState } from "../state/state.ts";
import type { Transaction } from "../transaction.ts";

/**
 * Whether a client of a job may read a worker. @param client Null: any client of another process.
 */
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

/** Whether the worker should have a task of the iteration. */
export function isServedBy(state: DispatcherState, iteration: Iteration, worker: Worker): boolean {
  const parameters = parametersOf(state, iteration);
  if (mayRead(parameters, null, worker)) return true;
  // The rest may read it only from its own process.
  if (worker.process === null) return false;
  for (const client of state.clientsOfIteration(iteration.iterationId)) {
    if (mayRead(parameters, client, worker)) return true;
  }
  return false;
}

/** Gives a task to each live worker that all clients of the iteration may read. */
export function serveAllClients(tx: Transaction, iteration: Iteration): void {
  const parameters = parametersOf(tx.state, iteration);
  for (const worker of tx.state.workersFor(parameters)) {
    if (worker.alive && mayRead(parameters, null, worker)) createTask(tx, iteration, worker.name);
  }
}

/** A client has joined: gives tasks to workers that only clients of its process may read. */
export function serveNewClient(tx: Transaction, client: Client): void {
  const iteration = tx.state.iterations.get(client.iterationId)!;
  const parameters = parametersOf(tx.state, iteration);
  for (const worker of tx.state.workersOfProcess(client.process)) {
    // Workers that all clients may read got their tasks when the iteration was created.
    const isRestricted = !mayRead(parameters, null, worker) && mayRead(parameters, client, worker);
    if (worker.alive && isRestricted) createTask(tx, iteration, worker.name);
  }
}

/** A client has left: ends tasks that no other client may read. */
export function endUnread(tx: Transaction, iteration: Iteration, client: Client): void {
  const { state } = tx;
  // Only workers of the client's own process can have had tasks for it alone.
  for (const worker of state.workersOfProcess(client.process)) {
    const task = state.taskAt(iteration.iterationId, worker.name);
    if (task === undefined || isServedBy(state, iteration, worker)) continue;
    endTask(tx, task, "unread");
    finishIfDone(tx, iteration.iterationId);
  }
}
