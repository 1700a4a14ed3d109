/** How records change the tasks. */
import { modeOf } from "../modes/modes.ts";
import type { RecordOf } from "../journal/records.ts";
import { need, type Tables } from "./tables.ts";

export function created(tables: Tables, record: RecordOf<"task_created">): void {
  const { taskId, iterationId, worker, seed } = record;
  const given = { taskId, iterationId, worker, seed };
  tables.addTask({ ...given, source: null, completed: false, runnerDeaths: 0, requests: [] });
}

export function ready(tables: Tables, record: RecordOf<"task_ready">): void {
  tables.readyTask(need(tables.tasks.get(record.taskId), record), record.source);
}

export function completed(tables: Tables, record: RecordOf<"task_completed">): void {
  const task = need(tables.tasks.get(record.taskId), record);
  tables.completeTask(task);
  const iteration = need(tables.iterations.get(task.iterationId), record);
  iteration.anyCompleted = true;
  const { workers } = need(tables.jobs.get(iteration.jobId), record);
  modeOf(tables, iteration).taskCompleted(iteration, task, workers);
}

export function ended(tables: Tables, record: RecordOf<"task_ended">): void {
  const task = need(tables.tasks.get(record.taskId), record);
  const iteration = tables.iterations.get(task.iterationId);
  if (iteration !== undefined) modeOf(tables, iteration).taskEnded(iteration, task);
  tables.removeTask(task);
}
