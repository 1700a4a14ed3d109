/** How records change the splits of an iteration, and how many are assigned. */
import type { RecordOf } from "../journal/records.ts";
import { noteRequest } from "../modes/split_requests.ts";
import { need, type Tables } from "./tables.ts";

export function listed({ iterations }: Tables, record: RecordOf<"splits_listed">): void {
  const { iterationId, bounds, digest } = record;
  const cursors = bounds.map(() => ({ repetition: 0, next: 0 }));
  need(iterations.get(iterationId), record).splits = { bounds, digest, cursors };
}

export function assigned({ tasks, iterations }: Tables, record: RecordOf<"split_assigned">): void {
  const { taskId, source, repetition, index, number } = record;
  const task = need(tasks.get(taskId), record);
  const cursor = need(iterations.get(task.iterationId)?.splits?.cursors[source], record);
  cursor.repetition = repetition;
  cursor.next = index + 1;
  noteRequest(task, source, number, index);
}
