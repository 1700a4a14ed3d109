/**
 * The splits granted to a task's newest requests, so that a repeated request gets the same split.
 */
import { LeatError } from "../../../core/error.ts";
import type { RecordOf } from "../journal/records.ts";
import { SPLIT_REQUESTS_KEPT, type Task } from "../state/entities.ts";
import { need, type Tables } from "../state/tables.ts";

/** The ring of a source that was not asked for: all tasks share it, because sources can be many. */
const NO_REQUESTS: number[] = [];

export function noteRequest(
  { requests }: Task,
  series: number,
  number: number,
  granted: number,
): void {
  while (requests.length <= series) requests.push(NO_REQUESTS);
  // Never write to the shared ring, nor to its copies from a snapshot.
  let ring = requests[series]!;
  if (ring.length === 0) {
    requests[series] = ring = Array<number>(2 * SPLIT_REQUESTS_KEPT).fill(0);
  }
  const place = 2 * (number % SPLIT_REQUESTS_KEPT);
  ring[place] = number;
  ring[place + 1] = granted;
}

/**
 * The split that was granted to this request, if any. Requests may be reordered, so a number
 * without a grant may be new. It is old only if a higher number has overwritten its slot.
 * @throws LeatError `failed_precondition` for an old request.
 */
export function knownAnswer(task: Task, number: number, series: number): number | undefined {
  const ring = task.requests[series];
  if (ring === undefined || ring.length === 0) return undefined;
  const place = 2 * (number % SPLIT_REQUESTS_KEPT);
  const newest = ring[place]!;
  if (newest === number) return ring[place + 1];
  if (newest < number) return undefined;
  throw new LeatError(
    "failed_precondition",
    `Task ${task.taskId} repeats split request ${number} of series ${series} although it has made ` +
      `request ${newest}`,
  );
}

export function isNew({ requests }: Task, number: number, series: number): boolean {
  const newest = requests[series]?.[2 * (number % SPLIT_REQUESTS_KEPT)] ?? 0;
  return newest < number;
}

/** Applies a `split_assigned` record. */
export function assignSplit(
  { tasks, iterations }: Tables,
  record: RecordOf<"split_assigned">,
): void {
  const { taskId, source, repetition, index, number } = record;
  const task = need(tasks.get(taskId), record);
  const cursor = need(iterations.get(task.iterationId)?.splits?.cursors[source], record);
  cursor.repetition = repetition;
  cursor.next = index + 1;
  noteRequest(task, source, number, index);
}
