/** How records change what is known of streams: their readers, and their newest run's positions. */
import type { Iteration, StreamRun } from "../../state/entities.ts";
import { trimOldest } from "../../state/keyed_sets.ts";
import { leave } from "./ordered_state.ts";
import type { RecordOf } from "../../journal/records.ts";
import type { Tables } from "../../state/tables.ts";

/** Most earlier runs of a stream remembered, to be refused. The oldest are dropped. */
const PAST_RUNS_KEPT = 64;
/** Most streams whose runs are remembered, even without jobs. The oldest are dropped. */
const RUNS_KEPT = 65_536;
/** Most streams and consumers whose readers are remembered. The oldest are dropped. */
const READERS_KEPT = 65_536;

/** A client has joined a stream, as its reader or as one of its consumers. */
export function noteReader({ readers }: Tables, record: RecordOf<"client_opened">): void {
  const { stream, consumerIndex, clientId, restoration } = record;
  if (stream === undefined) return;
  const key = readersKey(stream, consumerIndex);
  const before = readers.get(key)?.restored ?? null;
  const isNew = restoration !== undefined && restoration !== before?.name;
  // Reinserts it as the newest.
  readers.delete(key);
  readers.set(key, {
    newest: clientId,
    restored: isNew ? { name: restoration, first: clientId } : before,
  });
  trimOldest(readers, READERS_KEPT);
}

/** The key of a stream's readers, or of those that were one consumer of it. */
export function readersKey(stream: string, consumerIndex: number | null): string {
  return `${consumerIndex ?? ""}/${stream}`;
}

/** A client has joined a stream, in a run if it names one. */
export function cameInRun(
  tables: Tables,
  iteration: Iteration,
  record: RecordOf<"client_opened">,
): void {
  const { stream, runId, clientId, consumerIndex } = record;
  if (stream === undefined || runId === undefined) return;
  const known = tables.runs.get(stream);
  const past = known === undefined ? [] : [...known.past, known.runId].slice(-PAST_RUNS_KEPT);
  const run: StreamRun = known?.runId === runId
    ? { ...known, newest: clientId }
    : { runId, past, newest: clientId, passed: [] };
  // Reinserts it as the newest.
  tables.runs.delete(stream);
  tables.runs.set(stream, run);
  trimOldest(tables.runs, RUNS_KEPT);
  pass(tables, iteration, consumerIndex, iteration.repetition - 1);
}

/** A consumer has finished a repetition and all earlier ones: no consumer waits for it there. */
export function pass(
  tables: Tables,
  { jobId, run }: Iteration,
  consumerIndex: number | null,
  repetition: number,
): void {
  const current = run === null ? undefined : tables.runs.get(run.stream);
  if (run === null || current?.runId !== run.runId || consumerIndex === null) return;
  let job = current.passed.find((each) => each.jobName === tables.jobs.get(jobId)?.name);
  if (job === undefined) {
    job = { jobName: tables.jobs.get(jobId)!.name!, repetitions: [] };
    current.passed.push(job);
  }
  const { repetitions } = job;
  while (repetitions.length <= consumerIndex) repetitions.push(-1);
  repetitions[consumerIndex] = Math.max(repetitions[consumerIndex]!, repetition);
  for (const other of tables.iterationsOfJob.get(jobId)?.values() ?? []) {
    if (other.run?.runId === run.runId) leavePassed(other, repetitions, consumerIndex);
  }
}

/** An iteration starts in a run: consumers that have passed it will not join it. */
export function beginInRun(tables: Tables, iteration: Iteration): void {
  const { run, jobId } = iteration;
  const current = run === null ? undefined : tables.runs.get(run.stream);
  if (run === null || current?.runId !== run.runId) return;
  const name = tables.jobs.get(jobId)?.name;
  const { repetitions = [] } = current.passed.find(({ jobName }) => jobName === name) ?? {};
  for (const index of repetitions.keys()) leavePassed(iteration, repetitions, index);
}

function leavePassed(
  { ordered, repetition }: Iteration,
  repetitions: readonly number[],
  index: number,
): void {
  if (ordered?.consumers?.[index]?.state !== "awaited" || repetitions[index]! < repetition) return;
  leave(ordered, index);
}
