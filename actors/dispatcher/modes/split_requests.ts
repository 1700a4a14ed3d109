/** Splits granted to a task's newest requests: repeats get them again, even after a restart. */
import { LeatError } from "../../../core/error.ts";
import { SPLIT_REQUESTS_KEPT, type Task } from "../state/entities.ts";

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
 * The earlier grant of a request, if any. Requests may be reordered, so an unknown number is old
 * only if a newer one has overwritten its slot.
 * @throws LeatError `failed_precondition` for an old one.
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

export function isNew({ requests }: Task, number: number, series: number): boolean {
  const newest = requests[series]?.[2 * (number % SPLIT_REQUESTS_KEPT)] ?? 0;
  return newest < number;
}
