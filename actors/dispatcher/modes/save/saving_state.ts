/**
 * How far a save is, and how the journal's records change it.
 *
 * A save's splits are written in runs of splits that follow each other in their order. Runs that are
 * written are entered in the folder's ledger, in order: one entry at a time, by whoever has nothing
 * else to do.
 *
 * @module
 */
import type { WrittenRun } from "../../../../data/saved/distributed/work.ts";
import type { Iteration } from "../../state/entities.ts";
import type { RecordOf } from "../../journal/records.ts";
import { survived } from "../../state/runner_deaths_state.ts";
import { splitCount } from "../../state/split_table.ts";
import { need, type Tables } from "../../state/tables.ts";

/** Splits that follow each other in their order. */
export interface Run {
  /** The place of the first. */
  readonly first: number;
  readonly count: number;
}

/** A save, from its beginning on. */
export interface Saving {
  /** That of the saved dataset to come. */
  readonly id: string;
  /** Splits from this one on were never handed out. */
  next: number;
  /** Being written. */
  assigned: (Run & { readonly taskId: number })[];
  /** Those whose task has ended before; ascending. They are handed out again as they are. */
  lost: Run[];
  /** Written, and not entered yet; ascending. */
  written: WrittenRun[];
  /** The ledger's entries have the splits before this one. */
  entered: number;
  entries: number;
  /** The entry that is to be made next, once that was decided. It stays as it is when its task is lost. */
  entry: { readonly upTo: number; taskId: number | null } | null;
  /** The last entry is made: there is a saved dataset. */
  isWhole: boolean;
  /** What was written so far. */
  splits: number;
  elements: number;
  sizeBytes: number;
}

/** How far a save had come when it was begun here. */
export interface SavingStart {
  readonly id: string;
  readonly entered: number;
  readonly entries: number;
  readonly written: readonly WrittenRun[];
  readonly elements: number;
  readonly sizeBytes: number;
}

/** Whether a save is over: all is written, or it has failed. */
export function isSaveOver({ saving, error }: Pick<Iteration, "saving" | "error">): boolean {
  return error !== null || saving?.isWhole === true;
}

/** Everything before this place is written. */
export function writtenUpTo({ written, entered }: Saving): number {
  let upTo = entered;
  for (const { first, count } of written) {
    if (first !== upTo) break;
    upTo += count;
  }
  return upTo;
}

/** The runs that the entry to be made has. */
export function runsOfEntry({ written, entry }: Saving): WrittenRun[] {
  return written.filter(({ first }) => entry !== null && first < entry.upTo);
}

/** A task has ended: what it was at is to be done by another. */
export function loseWork(saving: Saving, taskId: number): void {
  const lost = saving.assigned.filter((at) => at.taskId === taskId);
  saving.assigned = saving.assigned.filter((at) => at.taskId !== taskId);
  saving.lost = [...saving.lost, ...lost.map(({ first, count }) => ({ first, count }))]
    .sort((a, b) => a.first - b.first);
  if (saving.entry?.taskId === taskId) saving.entry.taskId = null;
}

/** A save begins, or goes on. */
export function begun({ iterations }: Tables, record: RecordOf<"save_begun">): void {
  const { type: _, iterationId, ...start } = record;
  need(iterations.get(iterationId), record).saving = savingFrom(start);
}

/** A task writes a run from now on. */
export function runAssigned(tables: Tables, record: RecordOf<"save_run_assigned">): void {
  const { taskId, first, count } = record;
  const { saving } = savingOf(tables, record);
  saving.lost = saving.lost.filter((run) => run.first !== first);
  saving.assigned.push({ first, count, taskId });
  saving.next = Math.max(saving.next, first + count);
}

/** A task has written its run. */
export function runWritten(tables: Tables, record: RecordOf<"save_run_written">): void {
  const { taskId, attempt } = record;
  const { saving, iteration } = savingOf(tables, record);
  const run = saving.assigned.find((at) => at.taskId === taskId);
  if (run === undefined) return;
  const { first, count } = run;
  saving.assigned = saving.assigned.filter((at) => at !== run);
  saving.written = [...saving.written, { first, count, attempt }].sort((a, b) => a.first - b.first);
  saving.splits += count;
  survived(iteration, (place) => place === first);
  add(saving, record);
}

/** A task makes the next entry from now on. */
export function entryAssigned(tables: Tables, record: RecordOf<"save_entry_assigned">): void {
  const { taskId, upTo } = record;
  savingOf(tables, record).saving.entry = { upTo, taskId };
}

/** The entry is made. */
export function entryWritten(tables: Tables, record: RecordOf<"save_entry_written">): void {
  const { saving, iteration } = savingOf(tables, record);
  const { bounds } = need(iteration.splits ?? undefined, record);
  if (saving.entry === null) return;
  const { upTo } = saving.entry;
  saving.written = saving.written.filter(({ first }) => first >= upTo);
  saving.entered = upTo;
  saving.entries++;
  saving.entry = null;
  survived(iteration, (place) => place === null);
  saving.isWhole = upTo >= splitCount(bounds, 0);
  add(saving, record);
}

/** The state of a save that begins; what lies between runs that are written is to be written again. */
function savingFrom({ written, entered, ...start }: SavingStart): Saving {
  const lost: Run[] = [];
  let [next, splits] = [entered, entered];
  for (const { first, count } of written) {
    if (first > next) lost.push({ first: next, count: first - next });
    next = first + count;
    splits += count;
  }
  return {
    ...start,
    entered,
    next,
    lost,
    splits,
    written: [...written],
    assigned: [],
    entry: null,
    isWhole: false,
  };
}

/** What a task's record speaks of. */
function savingOf(
  { tasks, iterations }: Tables,
  record: RecordOf<
    "save_run_assigned" | "save_run_written" | "save_entry_assigned" | "save_entry_written"
  >,
): { readonly saving: Saving; readonly iteration: Iteration } {
  const { iterationId } = need(tasks.get(record.taskId), record);
  const iteration = need(iterations.get(iterationId), record);
  return { saving: need(iteration.saving ?? undefined, record), iteration };
}

/** How much was written. */
interface SavedAmount {
  readonly elements: number;
  readonly sizeBytes: number;
}

function add(saving: Saving, { elements, sizeBytes }: SavedAmount): void {
  saving.elements += elements;
  saving.sizeBytes += sizeBytes;
}
