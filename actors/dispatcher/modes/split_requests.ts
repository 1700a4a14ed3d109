/**
 * What a task's newest requests for splits were granted, so that a repeated one is answered alike,
 * also by a dispatcher that was started in between.
 *
 * @module
 */
import { LeatError } from "../../../core/error.ts";
import { SPLIT_REQUESTS_KEPT, type Task } from "../state/entities.ts";

/** Remembers what a request of a series was granted. */
export function noteRequest(
  { requests }: Task,
  series: number,
  number: number,
  granted: number,
): void {
  while (requests.length <= series) requests.push(Array<number>(2 * SPLIT_REQUESTS_KEPT).fill(0));
  const place = 2 * (number % SPLIT_REQUESTS_KEPT);
  requests[series]![place] = number;
  requests[series]![place + 1] = granted;
}

/**
 * What a request was granted before, if it was. Requests may overtake each other, so an unknown number
 * is old only when its place has been taken by a newer one.
 *
 * @throws LeatError `failed_precondition` for one that is old.
 */
export function knownAnswer(task: Task, number: number, series: number): number | undefined {
  const ring = task.requests[series];
  if (ring === undefined) return undefined;
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

/** Whether nothing is known of a request: it is to be decided on. */
export function isNew({ requests }: Task, number: number, series: number): boolean {
  const newest = requests[series]?.[2 * (number % SPLIT_REQUESTS_KEPT)] ?? 0;
  return newest < number;
}
