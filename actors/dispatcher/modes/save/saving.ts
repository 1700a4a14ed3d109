/**
 * Assigns the work of a save to workers: runs of splits, and entries of the folder's ledger. Only
 * workers touch files.
 */
import type { WireError } from "../../../../core/error.ts";
import { definedFields } from "../../../../core/tree.ts";
import type { SaveWork } from "../../../../data/saved/distributed/work.ts";
import type { AnswerOf, RequestOf } from "../../../runtime/protocol.ts";
import type { Iteration, TaskOfIteration } from "../../state/entities.ts";
import { orderOf } from "../deterministic/ordered.ts";
import type { DispatcherProtocol } from "../../protocol.ts";
import {
  isSaveOver,
  RUN_SPLITS_MAX,
  runsOfEntry,
  type SaveRun,
  type Saving,
  writtenUpTo,
} from "./saving_state.ts";
import { splitAt, splitCount } from "../../../../data/sharding/split_table.ts";
import type { DispatcherState } from "../../state/state.ts";
import type { Transaction } from "../../transaction.ts";

export type SaveRequest = RequestOf<DispatcherProtocol, "getSaveWork">;
export type SaveAnswer = AnswerOf<DispatcherProtocol, "getSaveWork">;

/** Target size of a run, in bytes: smaller files are slow to read, larger ones slow to redo. */
const RUN_BYTES = 64 * 2 ** 20;
/**
 * A run has at most a fourth of a worker's even share of the remaining splits, so that all workers
 * end at about the same time.
 */
const SHARE_FRACTION = 4;
/** Limit of the runs that are assigned, or written and not entered. At the limit, workers wait. */
const RUNS_AHEAD_MAX = 1_024;

/** The owner of the save, as its folder records it. */
export function saveOwner({ clusterId }: DispatcherState, { iterationId }: Iteration): string {
  return `${clusterId}/${iterationId}`;
}

/** Whether a request can be answered now. */
export function hasSaveWork(
  state: DispatcherState,
  iteration: Iteration,
  { taskId, done, failed, isLast }: SaveRequest,
): boolean {
  const { saving } = iteration;
  if (isSaveOver(iteration)) return true;
  if (saving === null) return false;
  return isLast === true || done !== undefined || failed !== undefined ||
    workOf(saving, taskId) !== undefined ||
    nextWork(state, iteration) !== undefined;
}

/** Records a task's result and assigns its next piece; see `DispatcherProtocol.getSaveWork`. */
export function assignSaveWork(
  tx: Transaction,
  { task, iteration }: TaskOfIteration,
  request: SaveRequest,
): SaveAnswer {
  const { state } = tx;
  recordResult(tx, { task, iteration }, request);
  const { saving } = iteration;
  if (saving === null || isSaveOver(iteration)) {
    return { work: lastWork(state, iteration, request) };
  }
  const { taskId } = task;
  if (workOf(saving, taskId) === undefined) {
    if (request.isLast === true) return { work: "later" };
    const next = nextWork(state, iteration);
    if (next === undefined) return { work: "later" };
    if ("upTo" in next) tx.append({ type: "save_entry_assigned", taskId, upTo: next.upTo });
    else tx.append({ type: "save_run_assigned", taskId, ...next });
  }
  return { work: describeWork(state, iteration, workOf(saving, taskId)!) };
}

/** Records a piece's result or failure, once: the report is repeated if its answer is lost. */
function recordResult(
  tx: Transaction,
  { task: { taskId, worker }, iteration }: TaskOfIteration,
  { done, failed }: SaveRequest,
): void {
  const { state } = tx;
  const { saving, iterationId } = iteration;
  const work = saving === null ? undefined : workOf(saving, taskId);
  if (saving === null || work === undefined || isSaveOver(iteration)) return;
  if (failed !== undefined) {
    tx.append({
      type: "iteration_failed",
      iterationId,
      error: state.modeOf(iteration).failure({ state, iteration }, worker, failed),
    });
  } else if (done?.work === "run" && "first" in work && done.place === work.first) {
    const { attempt = "", elements, sizeBytes, restBytes } = done;
    const amount = { elements, sizeBytes, ...definedFields({ restBytes }) };
    tx.append({ type: "save_run_written", taskId, attempt, ...amount });
  } else if (done?.work === "entry" && "upTo" in work && done.place === saving.entries) {
    const { elements, sizeBytes } = done;
    tx.append({ type: "save_entry_written", taskId, elements, sizeBytes });
    if (saving.isWhole) tx.append({ type: "iteration_finished", iterationId });
  }
}

/**
 * The last work of a task, once the save is over. Tasks that were given up as dead must not write a
 * failure into the folder, so this is the only way to it. The task that failed gets it, or if the
 * save was cancelled, those that were created for it.
 */
function lastWork(
  state: DispatcherState,
  iteration: Iteration,
  { failed }: SaveRequest,
): SaveWork | null {
  const { saving, error } = iteration;
  if (saving === null || error === null) return null;
  if (failed === undefined && !isCancelled(error)) return null;
  return { work: "failure", owner: saveOwner(state, iteration), id: saving.id, error };
}

/** The `details.reason` of the error of a save that a client has ended. */
export const SAVE_CANCELLED = "save_cancelled";

/** Whether tasks are wanted that write the end of a cancelled save into its folder. */
export function isEndToWrite({ saving, error }: Iteration): boolean {
  return saving !== null && isCancelled(error);
}

function isCancelled(error: WireError | null): boolean {
  return error?.details?.["reason"] === SAVE_CANCELLED;
}

type Assigned = SaveRun | { readonly upTo: number };

/** A task's current piece. */
function workOf({ assigned, entry }: Saving, taskId: number): Assigned | undefined {
  return assigned.find((run) => run.taskId === taskId) ??
    (entry?.taskId === taskId ? { upTo: entry.upTo } : undefined);
}

/** The next available piece. Entries come first, because readers see only entered runs. */
function nextWork(state: DispatcherState, iteration: Iteration): Assigned | undefined {
  const saving = iteration.saving!;
  const total = splitCount(iteration.splits!.bounds, 0);
  if (saving.entry === null) {
    const upTo = writtenUpTo(saving);
    if (upTo > saving.entered || upTo >= total) return { upTo };
  } else if (saving.entry.taskId === null) return { upTo: saving.entry.upTo };
  const [lost] = saving.lost;
  if (lost !== undefined) return lost;
  if (saving.next >= total || saving.written.length + saving.assigned.length >= RUNS_AHEAD_MAX) {
    return undefined;
  }
  return { first: saving.next, count: runLength(state, iteration, total) };
}

/** The number of splits of the next run, estimated from the sizes of earlier runs. */
function runLength(
  state: DispatcherState,
  { iterationId, saving }: Iteration,
  total: number,
): number {
  const { next, splits, sizeBytes, runBytes = 0 } = saving!;
  const tasks = Math.max(1, state.tasksOfIteration(iterationId).size);
  const fairCount = Math.ceil((total - next) / (SHARE_FRACTION * tasks));
  // Left-over rows count in `sizeBytes` only once an entry has them.
  const bytes = Math.max(1, sizeBytes, runBytes);
  const countOfBytes = splits === 0 ? 1 : Math.round(RUN_BYTES * splits / bytes);
  return Math.max(1, Math.min(fairCount, countOfBytes, RUN_SPLITS_MAX));
}

function describeWork(state: DispatcherState, iteration: Iteration, work: Assigned): SaveWork {
  const saving = iteration.saving!;
  const { bounds } = iteration.splits!;
  const { id, entries } = saving;
  const owner = saveOwner(state, iteration);
  if ("upTo" in work) {
    const { upTo } = work;
    const isLast = upTo >= splitCount(bounds, 0);
    const runs = runsOfEntry(saving);
    return { work: "entry", owner, id, number: entries, runs, upTo, isLast };
  }
  const order = orderOf(state, iteration);
  const splits = Array.from({ length: work.count }, (_, i) => {
    const index = order[work.first + i]!;
    return { ...splitAt(bounds, 0, index), index };
  });
  return { work: "run", owner, id, first: work.first, splits };
}
