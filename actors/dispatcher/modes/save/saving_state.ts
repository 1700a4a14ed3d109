/**
 * The progress of a save. Tasks write runs of consecutive splits. A task also enters the written
 * runs in the folder's ledger, in order, one entry at a time.
 */
import type { WrittenRun } from "../../../../data/saved/distributed/work.ts";
import type { Iteration } from "../../state/entities.ts";
import type { RecordOf } from "../../journal/records.ts";
import { survived } from "../../state/runner_deaths_state.ts";
import { splitCount } from "../../../../data/sharding/split_table.ts";
import { need, type Tables } from "../../state/tables.ts";

/** Limit of the splits of one run, because a message lists them. */
export const RUN_SPLITS_MAX = 4_096;

/** Consecutive splits. */
export interface SaveRun {
  readonly first: number;
  readonly count: number;
}

export interface Saving {
  readonly id: string;
  /** Splits from this one on were never assigned. */
  next: number;
  /** Runs being written. */
  assigned: (SaveRun & { readonly taskId: number })[];
  /** Runs whose task has ended, ascending. They are assigned again unchanged. */
  lost: SaveRun[];
  /** Written runs that are not entered yet, ascending. */
  written: WrittenRun[];
  /** The ledger contains the splits before this one. */
  entered: number;
  entries: number;
  /**
   * The entry in writing, if any. Without a task (null), another task must write the same entry.
   */
  entry: { readonly upTo: number; taskId: number | null } | null;
  /** The last entry is written: the saved dataset is complete. */
  isWhole: boolean;
  /** Splits written so far, with their elements and bytes. */
  splits: number;
  elements: number;
  sizeBytes: number;
  /** Bytes of the runs, with the rows that their splits left over; left out before the first run. */
  runBytes?: number;
}

/** The progress of a save when it starts or resumes here. */
export interface SavingStart {
  readonly id: string;
  /** How many splits the ledger has entered, and in how many entries. */
  readonly entered: number;
  readonly entries: number;
  readonly written: readonly WrittenRun[];
  readonly elements: number;
  readonly sizeBytes: number;
}

/** Whether a save is over: complete or failed. */
export function isSaveOver({ saving, error }: Pick<Iteration, "saving" | "error">): boolean {
  return error !== null || saving?.isWhole === true;
}

/** The first split that is not written yet. */
export function writtenUpTo({ written, entered }: Saving): number {
  let upTo = entered;
  for (const { first, count } of written) {
    if (first !== upTo) break;
    upTo += count;
  }
  return upTo;
}

export function runsOfEntry({ written, entry }: Saving): WrittenRun[] {
  return written.filter(({ first }) => entry !== null && first < entry.upTo);
}

/** A task has ended: another must do its work. */
export function loseWork(saving: Saving, taskId: number): void {
  const lost = saving.assigned.filter((at) => at.taskId === taskId);
  saving.assigned = saving.assigned.filter((at) => at.taskId !== taskId);
  saving.lost = [...saving.lost, ...lost.map(({ first, count }) => ({ first, count }))]
    .sort((a, b) => a.first - b.first);
  if (saving.entry?.taskId === taskId) saving.entry.taskId = null;
}

export function begun({ iterations }: Tables, record: RecordOf<"save_begun">): void {
  const { type: _, iterationId, ...start } = record;
  need(iterations.get(iterationId), record).saving = savingFrom(start);
}

/** A task starts to write a run. */
export function runAssigned(tables: Tables, record: RecordOf<"save_run_assigned">): void {
  const { taskId, first, count } = record;
  const { saving } = savingOf(tables, record);
  saving.lost = saving.lost.filter((run) => run.first !== first);
  saving.assigned.push({ first, count, taskId });
  saving.next = Math.max(saving.next, first + count);
}

export function runWritten(tables: Tables, record: RecordOf<"save_run_written">): void {
  const { taskId, attempt, sizeBytes, restBytes = 0 } = record;
  const { saving, iteration } = savingOf(tables, record);
  const run = saving.assigned.find((at) => at.taskId === taskId);
  if (run === undefined) return;
  const { first, count } = run;
  saving.assigned = saving.assigned.filter((at) => at !== run);
  saving.written = [...saving.written, { first, count, attempt }].sort((a, b) => a.first - b.first);
  saving.splits += count;
  saving.runBytes = sumOf(saving.runBytes ?? saving.sizeBytes, sizeBytes, restBytes);
  survived(iteration, (place) => place === first);
  add(saving, record);
}

/** A task starts to write the next entry. */
export function entryAssigned(tables: Tables, record: RecordOf<"save_entry_assigned">): void {
  const { taskId, upTo } = record;
  savingOf(tables, record).saving.entry = { upTo, taskId };
}

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

/** The state of a save that starts. Gaps between the written runs become lost runs. */
function savingFrom({ written, entered, ...start }: SavingStart): Saving {
  const lost: SaveRun[] = [];
  let [next, splits] = [entered, entered];
  for (const { first, count } of written) {
    for (; next < first; next += RUN_SPLITS_MAX) {
      lost.push({ first: next, count: Math.min(RUN_SPLITS_MAX, first - next) });
    }
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

/** The save that a task's record is about. */
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

interface SavedAmount {
  readonly elements: number;
  readonly sizeBytes: number;
}

function add(saving: Saving, { elements, sizeBytes }: SavedAmount): void {
  saving.elements = sumOf(saving.elements, elements);
  saving.sizeBytes = sumOf(saving.sizeBytes, sizeBytes);
}

/** A sum of amounts that workers state. It stays a count, whatever they state. */
function sumOf(...amounts: readonly number[]): number {
  return Math.min(Number.MAX_SAFE_INTEGER, amounts.reduce((sum, amount) => sum + amount));
}
