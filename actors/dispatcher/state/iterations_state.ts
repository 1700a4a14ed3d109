/** How records change the jobs and their iterations. */
import type { Iteration } from "./entities.ts";
import { modeFor } from "../modes/modes.ts";
import type { RecordOf } from "../journal/records.ts";
import { need, type Tables } from "./tables.ts";

export function jobCreated(tables: Tables, record: RecordOf<"job_created">): void {
  const { type: _, workers = null, ...job } = record;
  tables.addJob({ ...job, workers });
}

export function created(tables: Tables, record: RecordOf<"iteration_created">): void {
  const { iterationId, jobId, repetition, seed, run = null } = record;
  const { parameters } = need(tables.jobs.get(jobId), record);
  const mode = modeFor(parameters);
  const iteration: Iteration = {
    iterationId,
    jobId,
    repetition,
    seed,
    run,
    anyCompleted: false,
    finished: false,
    splits: null,
    error: null,
    deaths: [],
    ...mode.begin(record, parameters),
  };
  tables.addIteration(iteration, mode.roundIndexFor(iteration));
  mode.iterationCreated(tables, iteration);
}

export function failed({ iterations }: Tables, record: RecordOf<"iteration_failed">): void {
  need(iterations.get(record.iterationId), record).error = record.error;
}

export function finished(tables: Tables, record: RecordOf<"iteration_finished">): void {
  tables.finishIteration(need(tables.iterations.get(record.iterationId), record));
}

export function collected(tables: Tables, record: RecordOf<"iteration_collected">): void {
  tables.removeIteration(need(tables.iterations.get(record.iterationId), record));
}
