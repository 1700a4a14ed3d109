/** Workers: how they register, report and leave, and what the dispatcher answers. */
import { LeatError } from "../../../core/error.ts";
import type { AnswerOf, RequestOf } from "../../runtime/protocol.ts";
import { type FencedRef, formatRef, sameActor } from "../../runtime/ref.ts";
import type { WorkerProtocol } from "../../worker/protocol.ts";
import type { Task, Worker } from "../state/entities.ts";
import { createTask, endTask, finishIfDone, taskDefinition } from "../jobs/iterations.ts";
import type { DispatcherProtocol, TaskDefinition, TaskStatus } from "../protocol.ts";
import type { WorkNews } from "../protocol_heartbeats.ts";
import type { TaskEnd } from "../journal/records.ts";
import { forgeryOf, type Speaker } from "./speaking.ts";
import type { DispatcherState } from "../state/state.ts";
import { isServedBy } from "../jobs/targets.ts";
import type { Transaction } from "../transaction.ts";
import { definedFields } from "../../../core/tree.ts";

/**
 * Limit of the bytes of the new tasks in one answer, unless there is only one. The next answer has
 * the others: the pipelines of all tasks together may be larger than a message.
 */
const NEW_TASKS_BYTES_MAX = 64 * 2 ** 20;

type HeartbeatRequest = RequestOf<DispatcherProtocol, "workerHeartbeat">;
type HeartbeatAnswer = AnswerOf<DispatcherProtocol, "workerHeartbeat">;

export function workerHeartbeat(
  tx: Transaction,
  request: HeartbeatRequest,
  speaker: Speaker,
): HeartbeatAnswer {
  const { state } = tx;
  const { name, worker: ref, tasks } = request;
  const forgery = forgeryOf(state, request, speaker);
  if (forgery !== undefined) throw forgery;
  const worker = state.workers.get(name);
  const isLeaving = request.leaving === true;
  if (worker?.pastLives.includes(ref.incarnation)) {
    // The newest incarnation may repeat its request to leave.
    const isRepeated = isLeaving && worker.ref.incarnation === ref.incarnation;
    if (!isRepeated) throw pastLife(worker, ref);
  }
  if (isLeaving) return leave(tx, request);
  const before = worker?.ref.incarnation ?? ref.incarnation;
  if (before !== ref.incarnation && before !== request.follows) {
    return { kind: "takeover", incarnation: before };
  }
  const isUnheard = tx.unheard.delete(name);
  if (!worker?.alive || worker.ref.incarnation !== ref.incarnation) {
    register(tx, request, speaker);
  } else if (isUnheard) createTasks(tx, worker);
  const endedTasks = tasks.filter((status) => !report(tx, name, status))
    .map(({ taskId }) => taskId);
  if (request.figures?.draining === true) endUnreported(tx, request);
  return { kind: "work", ...tasksToStart(tx, request), endedTasks };
}

/** Why an incarnation that was replaced, or has left, cannot register again. */
function pastLife({ name, ref }: Worker, past: FencedRef): LeatError {
  const why = ref.incarnation === past.incarnation
    ? "has left. A heartbeat that it sent before was late"
    : `was replaced by ${formatRef(ref)}: only one worker can have a name at a time. Give each ` +
      "worker a name of its own";
  return new LeatError(
    "failed_precondition",
    `The worker "${name}" at ${formatRef(past)} ${why}`,
  );
}

/** The holder of the name that a worker claims in `follows`; undefined if it need not be asked. */
export function holderOfName(
  state: DispatcherState,
  { name, worker: { incarnation }, follows, leaving }: HeartbeatRequest,
): FencedRef<WorkerProtocol> | undefined {
  const known = state.workers.get(name);
  if (known === undefined || !known.alive || leaving === true) return undefined;
  if (known.ref.incarnation === incarnation || known.ref.incarnation !== follows) return undefined;
  return known.pastLives.includes(incarnation) ? undefined : known.ref;
}

/** Handles the last heartbeat of a worker: notes which tasks are completed, then ends all. */
function leave(tx: Transaction, { name, worker, tasks }: HeartbeatRequest): HeartbeatAnswer {
  const known = tx.state.workers.get(name);
  if (known?.alive && known.ref.incarnation === worker.incarnation) {
    for (const status of tasks) report(tx, name, status);
    loseWorker(tx, name, { left: true });
  }
  return { kind: "work", newTasks: [], endedTasks: [] };
}

/** Ends the tasks of a worker that leaves or timed out. */
export function loseWorker(
  tx: Transaction,
  name: string,
  how: { readonly left?: true } = {},
): void {
  endTasksOf(tx, name, "worker_lost");
  tx.append({ type: "worker_lost", name, wallMs: tx.wallMs, ...how });
}

/**
 * Registers a worker that is new, restarted or no longer lost. Gives it tasks of running
 * iterations.
 */
function register(tx: Transaction, request: HeartbeatRequest, { sender }: Speaker): void {
  const { name, worker, tags, process, isPrivate } = request;
  const { state } = tx;
  const affected = [...state.tasksOfWorker(name)].map(({ iterationId }) => iterationId);
  for (const task of [...state.tasksOfWorker(name)]) endTask(tx, task, "worker_restarted");
  tx.append({
    type: "worker_registered",
    name,
    worker,
    tags,
    owner: sender.name,
    ...definedFields({ process, isPrivate }),
  });
  // Before `finishIfDone`, because a restarted worker starts its unfinished tasks again.
  createTasks(tx, state.workers.get(name)!);
  for (const iterationId of affected) finishIfDone(tx, iterationId);
}

/** Gives the worker tasks of all iterations that it should serve. */
function createTasks(tx: Transaction, worker: Worker): void {
  for (const iteration of tx.state.iterationsFor(worker)) {
    if (isServedBy(tx.state, iteration, worker)) createTask(tx, iteration, worker.name);
  }
}

function endTasksOf(tx: Transaction, name: string, why: TaskEnd): void {
  for (const task of [...tx.state.tasksOfWorker(name)]) {
    endTask(tx, task, why);
    finishIfDone(tx, task.iterationId);
  }
}

/** Handles a worker's report about a task. False: the worker should drop the task. */
function report(tx: Transaction, name: string, status: TaskStatus): boolean {
  const { taskId, source, completed } = status;
  const task = tx.state.tasks.get(taskId);
  if (task === undefined || task.worker !== name) return false;
  if (status.failed === true) {
    endTask(tx, task, "task_failed");
    createTask(tx, tx.state.iterations.get(task.iterationId)!, name);
    return false;
  }
  if (source !== undefined && !(task.source !== null && sameActor(task.source, source))) {
    tx.append({ type: "task_ready", taskId, source });
  }
  if (completed && !task.completed) {
    tx.append({ type: "task_completed", taskId });
    finishIfDone(tx, task.iterationId);
  }
  return true;
}

/**
 * A draining worker starts no task. So it will produce nothing for those that it does not report,
 * and their iterations must not wait until it has left.
 */
function endUnreported(tx: Transaction, { name, tasks }: HeartbeatRequest): void {
  for (const task of unreported(tx.state, name, tasks)) {
    endTask(tx, task, "drained");
    finishIfDone(tx, task.iterationId);
  }
}

/** The worker's unfinished tasks that it does not report. */
function unreported(
  state: DispatcherState,
  name: string,
  tasks: readonly TaskStatus[],
): readonly Task[] {
  const held = new Set(tasks.map(({ taskId }) => taskId));
  return [...state.tasksOfWorker(name)].filter(({ taskId, completed }) =>
    !held.has(taskId) && !completed
  );
}

function tasksToStart(
  { state }: Transaction,
  { name, tasks }: HeartbeatRequest,
): Pick<WorkNews, "newTasks" | "hasMoreTasks"> {
  const newTasks: TaskDefinition[] = [];
  let bytes = 0;
  for (const task of unreported(state, name, tasks)) {
    const definition = taskDefinition(state, task);
    const { dataset, parameters } = definition;
    bytes += dataset.graph.byteLength + (parameters.policy?.shard.length ?? 0);
    if (bytes > NEW_TASKS_BYTES_MAX && newTasks.length > 0) return { newTasks, hasMoreTasks: true };
    newTasks.push(definition);
  }
  return { newTasks };
}
