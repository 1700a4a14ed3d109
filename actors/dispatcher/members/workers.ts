/**
 * Workers: their lives, what they report of their tasks, and what they are told.
 *
 * @module
 */
import { LeatError } from "../../../core/error.ts";
import type { AnswerOf, RequestOf } from "../../runtime/protocol.ts";
import { type FencedRef, formatRef, sameActor } from "../../runtime/ref.ts";
import type { WorkerProtocol } from "../../worker/protocol.ts";
import type { Task } from "../state/entities.ts";
import { createTask, definitionOf, endTask, finishIfDone } from "../jobs/iterations.ts";
import type { DispatcherProtocol, TaskDefinition, TaskStatus } from "../protocol.ts";
import type { TaskEnd } from "../journal/records.ts";
import { forgeryOf, type Speaker } from "./speaking.ts";
import type { DispatcherState } from "../state/state.ts";
import { isServedBy } from "../jobs/targets.ts";
import type { Turn } from "../turn.ts";

type HeartbeatRequest = RequestOf<DispatcherProtocol, "workerHeartbeat">;
type HeartbeatAnswer = AnswerOf<DispatcherProtocol, "workerHeartbeat">;

/** See `DispatcherProtocol.workerHeartbeat`. */
export function workerHeartbeat(
  turn: Turn,
  request: HeartbeatRequest,
  speaker: Speaker,
): HeartbeatAnswer {
  const { state } = turn;
  const { name, worker: ref, tasks } = request;
  const forgery = forgeryOf(state, request, speaker);
  if (forgery !== undefined) throw forgery;
  const worker = state.workers.get(name);
  if (worker?.pastLives.includes(ref.incarnation)) {
    throw new LeatError(
      "failed_precondition",
      `The worker "${name}" at ${formatRef(ref)} was followed by ${
        formatRef(worker.ref)
      }: one life of ` +
        `a name can work at a time. Give each worker a name of its own`,
    );
  }
  if (request.leaving === true) return leave(turn, request);
  const before = worker?.ref.incarnation ?? ref.incarnation;
  if (before !== ref.incarnation && before !== request.follows) {
    return { newTasks: [], endedTasks: [], follows: before };
  }
  if (!worker?.alive || worker.ref.incarnation !== ref.incarnation) {
    register(turn, request, speaker);
  }
  const endedTasks = tasks.filter((status) => !report(turn, name, status))
    .map(({ taskId }) => taskId);
  return { newTasks: tasksToStart(turn, request), endedTasks };
}

/** The life that has the name a worker asks for, as the one that follows it, if it is not known to be over. */
export function holderOfName(
  state: DispatcherState,
  { name, worker: { incarnation }, follows, leaving }: HeartbeatRequest,
): FencedRef<WorkerProtocol> | undefined {
  const known = state.workers.get(name);
  if (known === undefined || !known.alive || leaving === true) return undefined;
  if (known.ref.incarnation === incarnation || known.ref.incarnation !== follows) return undefined;
  return known.pastLives.includes(incarnation) ? undefined : known.ref;
}

/** A worker that says good-bye: what it has completed counts, the rest of its tasks ends now. */
function leave(turn: Turn, { name, worker, tasks }: HeartbeatRequest): HeartbeatAnswer {
  const known = turn.state.workers.get(name);
  if (known?.alive && known.ref.incarnation === worker.incarnation) {
    for (const status of tasks) report(turn, name, status);
    loseWorker(turn, name);
  }
  return { newTasks: [], endedTasks: [] };
}

/** Ends the tasks of a worker that was not heard of for too long. */
export function loseWorker(turn: Turn, name: string): void {
  endTasksOf(turn, name, "worker_lost");
  turn.commit({ type: "worker_lost", name, wallMs: turn.wallMs });
}

/** A worker that is new, or back, or in a new life: it gets a task of every iteration that goes on. */
function register(turn: Turn, request: HeartbeatRequest, { sender }: Speaker): void {
  const { name, worker, tags, process, isPrivate } = request;
  const { state } = turn;
  const affected = [...state.tasksOfWorker(name)].map(({ iterationId }) => iterationId);
  for (const task of [...state.tasksOfWorker(name)]) endTask(turn, task, "worker_restarted");
  turn.commit({
    type: "worker_registered",
    name,
    worker,
    tags,
    owner: sender.name,
    ...(process === undefined ? {} : { process }),
    ...(isPrivate === undefined ? {} : { isPrivate }),
  });
  const registered = state.workers.get(name)!;
  // Before the iterations are looked at: a restarted worker starts over where it has not finished.
  for (const iteration of state.iterationsFor(registered)) {
    if (isServedBy(state, iteration, registered)) createTask(turn, iteration, name);
  }
  for (const iterationId of affected) finishIfDone(turn, iterationId);
}

/** Ends all tasks of a worker. */
function endTasksOf(turn: Turn, name: string, why: TaskEnd): void {
  for (const task of [...turn.state.tasksOfWorker(name)]) {
    endTask(turn, task, why);
    finishIfDone(turn, task.iterationId);
  }
}

/** Notes what the worker says of a task. False: it should not have it. */
function report(turn: Turn, name: string, status: TaskStatus): boolean {
  const { taskId, source, completed } = status;
  const task = turn.state.tasks.get(taskId);
  if (task === undefined || task.worker !== name) return false;
  if (status.failed === true) {
    endTask(turn, task, "task_failed");
    createTask(turn, turn.state.iterations.get(task.iterationId)!, name);
    return false;
  }
  if (source !== undefined && !(task.source !== null && sameActor(task.source, source))) {
    turn.commit({ type: "task_ready", taskId, source });
  }
  if (completed && !task.completed) {
    turn.commit({ type: "task_completed", taskId });
    finishIfDone(turn, task.iterationId);
  }
  return true;
}

function tasksToStart({ state }: Turn, { name, tasks }: HeartbeatRequest): TaskDefinition[] {
  const held = new Set(tasks.map(({ taskId }) => taskId));
  const missing = (task: Task) => !held.has(task.taskId) && !task.completed;
  return [...state.tasksOfWorker(name)].filter(missing).map((task) => definitionOf(state, task));
}
