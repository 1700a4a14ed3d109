/**
 * How the journal's records change the jobs and their iterations.
 *
 * @module
 */
import { type Iteration, noRounds } from "./entities.ts";
import { orderedFrom } from "./ordered_state.ts";
import type { RecordOf } from "./records.ts";
import { beginInRun } from "./stream_runs_state.ts";
import { need, type Tables } from "./tables.ts";

export function jobCreated(tables: Tables, record: RecordOf<"job_created">): void {
  const { type: _, workers = null, ...job } = record;
  tables.addJob({ ...job, workers });
}

export function created(tables: Tables, record: RecordOf<"iteration_created">): void {
  const { type: _, startAt, behind, run = null, ...created } = record;
  const { numConsumers } = need(tables.jobs.get(record.jobId), record).parameters;
  const iteration: Iteration = {
    ...created,
    run,
    anyCompleted: false,
    shardsDone: [],
    finished: false,
    splits: null,
    error: null,
    deaths: [],
    saving: null,
    rounds: noRounds(),
    ordered: startAt === undefined ? null : orderedFrom({ startAt, behind }, numConsumers),
  };
  tables.addIteration(iteration);
  beginInRun(tables, iteration);
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
