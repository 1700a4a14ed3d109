/** How records change what is remembered about streams: readers, and progress of the newest run. */
import { stateOf } from "./consumers_state.ts";
import {
  bytesOfReaders,
  bytesOfRun,
  entryBytes,
  readersKey,
  REPETITION_BYTES,
} from "./stream_memory.ts";
import { joining } from "./left_consumers_state.ts";
import type { Iteration, StreamRun } from "../../state/entities.ts";
import { leave } from "./ordered_state.ts";
import type { RecordOf } from "../../journal/records.ts";
import type { Tables } from "../../state/tables.ts";

/** This many earlier runs of a stream are remembered, to be refused. The oldest are dropped. */
const PAST_RUNS_KEPT = 64;
/**
 * The passes of one `repeat` have consecutive numbers. If another `repeat` follows, its later passes
 * have numbers far away, before or after them. So of the passes of one iterator, only numbers that
 * differ by less than this tell which comes first.
 */
const COMPARABLE_MAX = 2 ** 16;

type Passed = StreamRun["passed"][number];

/** A repetition, and the iterator of the dataset of which it is a pass. */
interface Pass {
  readonly iterator: number;
  readonly repetition: number;
}

/** A client has joined a stream, as its reader or as one of its consumers. */
export function noteReader(
  { readers }: Tables,
  { ordered }: Pick<Iteration, "ordered">,
  record: RecordOf<"client_opened">,
): void {
  const { stream, consumerIndex, clientId, restoration } = record;
  if (stream === undefined) return;
  const key = readersKey(stream, consumerIndex);
  const known = readers.get(key);
  const before = known?.restored ?? null;
  const isNew = restoration !== undefined && restoration !== before?.name;
  const restored = isNew ? { name: restoration, first: clientId } : before;
  const now = { newest: clientId, restored, ...joining(known, ordered?.consumers?.pass) };
  readers.set(key, now, bytesOfReaders(key, now));
}

/** A client has joined a stream, perhaps as the first reader of a new run. */
export function noteRun(
  tables: Tables,
  iteration: Iteration,
  record: RecordOf<"client_opened">,
): void {
  const { stream, runId, clientId, consumerIndex } = record;
  if (stream === undefined || runId === undefined) return;
  const known = tables.runs.get(stream);
  const past = known === undefined ? [] : [...known.past, known.runId].slice(-PAST_RUNS_KEPT);
  const isSame = known?.runId === runId;
  const run: StreamRun = isSame
    ? { ...known, newest: clientId }
    : { runId, past, newest: clientId, passed: [] };
  tables.runs.set(stream, run, isSame ? tables.runs.bytesOf(stream) : bytesOfRun(stream, run));
  notePassed(tables, iteration, consumerIndex, iteration.repetition - 1);
}

/**
 * A consumer has finished a repetition and all earlier ones. No other consumer waits for it there.
 */
export function notePassed(
  tables: Tables,
  { jobId, run }: Iteration,
  consumerIndex: number | null,
  repetition: number,
): void {
  const current = run === null ? undefined : tables.runs.get(run.stream);
  if (run === null || current?.runId !== run.runId || consumerIndex === null) return;
  const jobName = tables.jobs.get(jobId)!.name!;
  let job = current.passed.find((each) => each.jobName === jobName);
  const known = finishedBy(job, consumerIndex);
  // Of a consumer that has finished no repetition, nothing need be remembered.
  if (repetition < 0 && known === undefined) return;
  if (job === undefined) {
    job = { jobName, repetitions: {} };
    current.passed.push(job);
    tables.runs.grow(run.stream, entryBytes([jobName]));
  }
  const pass = { iterator: run.iterator ?? 0, repetition };
  if (known === undefined || !hasPassed(known, pass)) {
    job.repetitions[consumerIndex] = repetition;
    if (pass.iterator > 0) (job.iterators ??= {})[consumerIndex] = pass.iterator;
  }
  if (known === undefined) tables.runs.grow(run.stream, REPETITION_BYTES);
  for (const other of tables.iterationsOfJob.get(jobId)?.values() ?? []) {
    if (other.run?.runId === run.runId) leavePassed(other, job, [consumerIndex]);
  }
}

/** An iteration starts in a run. Consumers that have finished its repetition will not join it. */
export function beginInRun(tables: Tables, iteration: Iteration): void {
  const { run, jobId } = iteration;
  const current = run === null ? undefined : tables.runs.get(run.stream);
  if (run === null || current?.runId !== run.runId) return;
  const name = tables.jobs.get(jobId)?.name;
  const job = current.passed.find(({ jobName }) => jobName === name);
  if (job !== undefined) leavePassed(iteration, job, Object.keys(job.repetitions).map(Number));
}

function leavePassed(
  { ordered, repetition, run }: Iteration,
  job: Passed,
  indices: readonly number[],
): void {
  if (!ordered?.consumers) return;
  const { consumers } = ordered;
  const pass = { iterator: run?.iterator ?? 0, repetition };
  const passed = indices.filter((index) =>
    hasPassed(finishedBy(job, index)!, pass) && stateOf(consumers, index) === "awaited"
  );
  if (passed.length > 0) leave(ordered, passed);
}

/** The last pass that a consumer has finished. */
function finishedBy(job: Passed | undefined, consumerIndex: number): Pass | undefined {
  const repetition = job?.repetitions[consumerIndex];
  if (repetition === undefined) return undefined;
  return { iterator: job!.iterators?.[consumerIndex] ?? 0, repetition };
}

/** Whether a consumer that has finished pass `finished` has passed `pass`. */
function hasPassed(finished: Pass, pass: Pass): boolean {
  if (finished.iterator !== pass.iterator) return finished.iterator > pass.iterator;
  const distance = finished.repetition - pass.repetition;
  return distance >= 0 && distance < COMPARABLE_MAX;
}
