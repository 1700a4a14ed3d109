/**
 * DETERMINISTIC: the splits have an order. The reader, or each of several consumers, puts the
 * elements back into that order. If a task ends, its splits are assigned again.
 */
import { LeatError } from "../../../../core/error.ts";
import { definedFields } from "../../../../core/tree.ts";
import { ShardingPolicy } from "../../../../data/sharding/sharding_policy.ts";
import { stateOf } from "./consumers_state.ts";
import { listed } from "./places.ts";
import type { Client, Iteration, Task, TaskOfIteration } from "../../state/entities.ts";
import type { ModeState, Ordered } from "../mode_state.ts";
import { whyHeldUp } from "../missing_consumers.ts";
import { assignSequence, isAnswerable, isReceived, noteReceived, PLACES_SHOWN } from "./ordered.ts";
import { join, leave, lose, orderedFrom } from "./ordered_state.ts";
import type { OrderedNews, ReaderReport } from "../../protocol_heartbeats.ts";
import { type JobParameters, READ_BY_ANOTHER } from "../../protocol.ts";
import type { RecordOf } from "../../journal/records.ts";
import { splitCount, SPLITS_MAX } from "../../../../data/sharding/split_table.ts";
import type { SplitAnswer, SplitRequest } from "../splits.ts";
import type { DispatcherState } from "../../state/state.ts";
import { checkFollows, ofOtherRuns, passOf, streamRole } from "./stream_readers.ts";
import { beginInRun, notePassed, noteReader, noteRun } from "./stream_runs_state.ts";
import { beginWithoutLeft, noteLeft } from "./left_consumers_state.ts";
import type { Tables } from "../../state/tables.ts";
import type { Transaction } from "../../transaction.ts";
import {
  invalid,
  type IterationStart,
  type JobFacts,
  type JoinDecision,
  Mode,
  type OpenRequest,
  type ReportContext,
  runIdElsewhere,
  type Subject,
} from "../mode.ts";

export class DeterministicMode extends Mode {
  override readonly needsSplits = true;

  override check({ jobName, runId, parameters, startAt, behind = [] }: OpenRequest): void {
    if (runId !== undefined && jobName === undefined) throw runIdElsewhere();
    checkOrder(parameters);
    if (parameters.sharing) throw eachElementOnce();
    if (startAt !== undefined && startAt > SPLITS_MAX) {
      throw invalid(
        `startAt must be the position of a split, at most ${SPLITS_MAX}, got ${startAt}`,
      );
    }
    const ascends = behind.every((at, i) => at < (behind[i + 1] ?? startAt ?? 0));
    if (!ascends) {
      throw invalid(
        `behind must be ascending positions before startAt (${startAt}), got ` +
          behind.slice(0, PLACES_SHOWN).join(", "),
      );
    }
  }

  override admit(state: DispatcherState, request: OpenRequest, facts: JobFacts): JoinDecision {
    const role = streamRole(state, request, facts.owner);
    const replaced = replacedBy(state, request, facts);
    checkFollows(state, replaced, request, role);
    return { replaced, client: { ...role, ...beginningOfConsumer(request) } };
  }

  override checkReaders(
    { state, iteration: { iterationId, jobId, repetition, ordered } }: Subject,
    { consumerIndex }: OpenRequest,
  ): void {
    const jobName = state.jobs.get(jobId)?.name;
    if (ordered?.consumers && stateOf(ordered.consumers, consumerIndex ?? -1) === "left") {
      throw new LeatError(
        "failed_precondition",
        `Consumer ${consumerIndex} of job "${jobName}" has left repetition ${repetition}, and the ` +
          "others continue without it. Restore all consumers from what they saved at one step, or " +
          "choose another jobName",
        { details: { reason: READ_BY_ANOTHER } },
      );
    }
    const [reader] = state.clientsOfIteration(iterationId);
    if (consumerIndex !== undefined || reader === undefined) return;
    throw new LeatError(
      "failed_precondition",
      `Repetition ${repetition} of the "${ShardingPolicy.DETERMINISTIC}" job "${jobName}" is read by ` +
        `client ${reader.clientId} already: one stream has one reader. If that reader has died, it is ` +
        "released clientGraceMs (by default 10 s) after its connection was closed, or clientTimeoutMs (2 min) " +
        "after its last message: start again then. Or give each reader a jobName of its own, or pass " +
        "a runId that is new at each start, which replaces the reader of an earlier run",
      { details: { reason: READ_BY_ANOTHER } },
    );
  }

  override initialFields(
    request: OpenRequest,
    { stream, runId }: JoinDecision["client"],
    { state }: Transaction,
  ): IterationStart {
    const { parameters, startAt = 0, behind = [], iterator } = request;
    return {
      seed: parameters.ordered!.seed,
      startAt,
      ...(behind.length === 0 ? {} : { behind }),
      ...(stream === undefined || runId === undefined
        ? {}
        : { run: { stream, runId, ...definedFields({ iterator }) } }),
      ...(stream === undefined || parameters.numConsumers === undefined
        ? {}
        : { pass: passOf(state, request, stream) }),
    };
  }

  override isSplitReady(
    { state, iteration }: Subject,
    request: SplitRequest,
    windowSplits: number,
  ): boolean {
    return isAnswerable(state, iteration, request, windowSplits);
  }

  override assignSplit(
    tx: Transaction,
    subject: TaskOfIteration,
    request: SplitRequest,
    windowSplits: number,
  ): SplitAnswer {
    return assignSequence(tx, subject, request, windowSplits);
  }

  override handleReport(
    tx: Transaction,
    client: Client,
    report: ReaderReport | undefined,
    { quotas }: ReportContext,
  ): void {
    if (report?.kind !== "ordered") return;
    noteReceived(tx, tx.state.iterations.get(client.iterationId)!, client, report, quotas);
  }

  override newsFor(
    { iteration: { ordered, splits } }: Subject,
    _client: Client,
    _report: ReaderReport | undefined,
    windowSplits: number,
  ): OrderedNews {
    const left = listed(ordered?.consumers?.left ?? []);
    if (splits === null) return { kind: "ordered", windowSplits, left };
    const table = { total: splitCount(splits.bounds, 0), digest: splits.digest };
    return { kind: "ordered", windowSplits, table, left };
  }

  override whyWaiting({ state, iteration }: Subject, windowSplits: number): string | null {
    return whyHeldUp(state, iteration, windowSplits);
  }

  /**
   * Once a reader has finished an epoch, no iteration up to that epoch waits for it. If a consumer
   * leaves its iterator, the other passes and chains do not wait for it either.
   */
  override othersWaiting(
    { state, iteration: { run, jobId, ordered } }: Subject,
    released?: RecordOf<"client_released">,
  ): readonly Iteration[] {
    const stream = ordered?.consumers?.pass?.stream;
    if (stream === undefined || released === undefined || !hasLeftStream(released)) {
      return run === null ? [] : state.iterationsOfJob(jobId);
    }
    return [...state.iterations.values()]
      .filter((other) => other.ordered?.consumers?.pass?.stream === stream);
  }

  /**
   * An iteration without readers ends: the next client starts a new one at the position that it
   * wants. A failed iteration stays, to show why it failed.
   */
  override whenUnread({ error }: Iteration): "waits" | "ends" {
    return error === null ? "ends" : "waits";
  }

  override assignedCount({ ordered }: Iteration): number | undefined {
    return ordered?.next;
  }

  /**
   * Not done before the reader has everything: other workers must reproduce what a lost one held.
   */
  override isDone(subject: Subject): boolean {
    return super.isDone(subject) && isReceived(subject.iteration);
  }

  override pieceOf(
    { iteration }: Subject,
    { taskId }: Task,
    place: number | undefined,
  ): number | null {
    const piece = checkPiece(taskId, iteration, place);
    const isAt = (at: Ordered["assigned"][number]) => at.sequence === piece && at.taskId === taskId;
    // Readers may have received the split since. A task can name any split, so those that it does
    // not have count as one piece.
    return iteration.ordered?.assigned.some(isAt) ? piece : null;
  }

  override namePiece(piece: number | null): string {
    return piece === null ? super.namePiece(piece) : `Split ${piece} of job`;
  }

  override initialState(
    record: RecordOf<"iteration_created">,
    parameters: JobParameters,
  ): ModeState {
    const { iterationId, startAt = 0, behind } = record;
    const pass = record.pass && { begun: iterationId, ...record.pass };
    const ordered = orderedFrom({ startAt, behind }, parameters.numConsumers, pass);
    return { ...super.initialState(record, parameters), ordered };
  }

  override iterationCreated(tables: Tables, iteration: Iteration): void {
    beginInRun(tables, iteration);
    beginWithoutLeft(tables, iteration);
  }

  override clientOpened(
    tables: Tables,
    iteration: Iteration,
    record: RecordOf<"client_opened">,
  ): void {
    const { consumerIndex, startAt = 0, behind } = record;
    const { ordered } = iteration;
    if (ordered?.consumers && consumerIndex !== null) {
      join(ordered, consumerIndex, { startAt, behind });
      tables.countIteration(iteration);
    }
    noteRun(tables, iteration, record);
    noteReader(tables, iteration, record);
  }

  override clientReleased(
    tables: Tables,
    iteration: Iteration,
    { consumerIndex }: Client,
    released: RecordOf<"client_released">,
  ): void {
    const { ordered, repetition } = iteration;
    if (ordered?.consumers && consumerIndex !== null) leave(ordered, [consumerIndex]);
    notePassed(tables, iteration, consumerIndex, repetition);
    // A consumer that has died will come to no other pass or chain either.
    if (hasLeftStream(released)) noteLeft(tables, iteration, consumerIndex);
  }

  /** The task takes no more splits. Its splits that the reader lacks are assigned again. */
  override taskCompleted({ ordered }: Iteration, { taskId }: Task): void {
    if (ordered !== null) lose(ordered, taskId);
  }

  override taskEnded({ ordered }: Iteration, { taskId }: Task): void {
    if (ordered !== null) lose(ordered, taskId);
  }
}

/** @throws {LeatError} for a piece of work that is no split of the iteration. */
export function checkPiece(
  taskId: number,
  { splits }: Iteration,
  place: number | undefined,
): number {
  const total = splits === null ? 0 : splitCount(splits.bounds, 0);
  if (place !== undefined && place < total) return place;
  throw invalid(
    `Task ${taskId} says that its runner died at split ${place}, but there are ${total} splits`,
  );
}

/** @throws {LeatError} for splits without an order. */
export function checkOrder({ ordered }: OpenRequest["parameters"]): void {
  if (ordered !== undefined && /^[0-9a-f]{16}$/.test(ordered.seed)) return;
  throw invalid(`A "${ShardingPolicy.DETERMINISTIC}" job needs a seed of 16 hexadecimal digits`);
}

/** The error for a job with sharing, which would deliver elements several times. */
export function eachElementOnce(): LeatError {
  return new LeatError(
    "unimplemented",
    `A "${ShardingPolicy.DETERMINISTIC}" job gives each element once; leave sharing out, or choose ` +
      "another processing mode",
  );
}

/** One of several consumers may start at another position than the others. */
function beginningOfConsumer({ parameters, startAt, behind = [] }: OpenRequest) {
  if (parameters.numConsumers === undefined || startAt === undefined) return {};
  return { startAt, ...(behind.length === 0 ? {} : { behind }) };
}

/**
 * The iterations to drop: of other runs, those that the client takes over, or its own if unread.
 */
function replacedBy(
  state: DispatcherState,
  request: OpenRequest,
  { job }: JobFacts,
): readonly Iteration[] {
  if (job === undefined) return [];
  const iterations = state.iterationsOfJob(job.jobId);
  const others = ofOtherRuns(iterations, request);
  if (others.length > 0) return others;
  const taken = takenOver(iterations, request);
  if (taken.length > 0) return taken;
  const found = state.iterationOf(job.jobId, request.repetition);
  const isUnread = found !== undefined && state.clientsOfIteration(found.iterationId).size === 0;
  return isUnread ? [found] : [];
}

/**
 * The iterations that a restored reader replaces. Its earlier client may still count as alive, in
 * any repetition. With several consumers, the first one to be restored restarts the stream for all,
 * and the others join it. So iterations of other repetitions must go, too: a consumer that is
 * restored into one of them would drop the new iteration.
 */
function takenOver(
  iterations: readonly Iteration[],
  { startAt, consumerIndex, runId }: OpenRequest,
): readonly Iteration[] {
  if (startAt === undefined) return [];
  if (consumerIndex === undefined) return iterations;
  // Readers of the same run join each other.
  if (runId !== undefined) return [];
  const hasJoined = ({ ordered }: Iteration) =>
    !ordered?.consumers || stateOf(ordered.consumers, consumerIndex) !== "awaited";
  return iterations.some(hasJoined) ? iterations : [];
}

/** Whether a client that ends so will read nothing more of its iterator. */
function hasLeftStream({ why, leaves }: RecordOf<"client_released">): boolean {
  return leaves === true || why === "gone" || why === "timed_out";
}
