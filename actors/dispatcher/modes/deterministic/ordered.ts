/**
 * Assigns splits under DETERMINISTIC: in order, to whichever task asks, within a window beyond the
 * reader's position. A split is assigned again if its task ends before the reader has it.
 */
import { type OrderSeed, splitOrder } from "../../../../data/deterministic/order.ts";
import { LeatError } from "../../../../core/error.ts";
import type { Client, Iteration, Splits, TaskOfIteration } from "../../state/entities.ts";
import type { Ordered } from "../mode_state.ts";
import { has, lowest } from "./places.ts";
import { PLACE_BYTES } from "../../held_bytes.ts";
import { parametersOf } from "../../jobs/iterations.ts";
import { mayKeepReport, type Quotas } from "../../jobs/quotas.ts";
import { SPARE_SERIES } from "../../protocol.ts";
import type { OrderedReport } from "../../protocol_heartbeats.ts";
import { isNew, knownAnswer } from "../split_requests.ts";
import { splitAt, splitCount } from "../../../../data/sharding/split_table.ts";
import { type SplitAnswer, type SplitRequest, splitsFor } from "../splits.ts";
import type { DispatcherState } from "../../state/state.ts";
import type { Transaction } from "../../transaction.ts";

/** An error message shows at most this many positions. */
export const PLACES_SHOWN = 10;

/** Whether the reader has all splits. */
export function isReceived({ ordered, splits }: Iteration): boolean {
  return ordered !== null && splits !== null && ordered.mark >= splitCount(splits.bounds, 0);
}

/**
 * Whether a request can be answered: it is repeated, a split is available, or none ever will be.
 */
export function isAnswerable(
  { tasks }: DispatcherState,
  iteration: Iteration,
  request: SplitRequest,
  windowSplits: number,
): boolean {
  const { splits } = iteration;
  if (splits === null) return iteration.error !== null;
  const task = tasks.get(request.taskId);
  return task === undefined || task.completed ||
    !isNew(task, request.number, seriesOf(request)) || isReceived(iteration) ||
    nextSequence(orderedOf(iteration), splits, request, windowSplits) !== undefined;
}

/** Assigns the first available split; null if this task gets no more. */
export function assignSequence(
  tx: Transaction,
  { task, iteration }: TaskOfIteration,
  request: SplitRequest,
  windowSplits: number,
): SplitAnswer {
  const { taskId, number } = request;
  const splits = splitsFor(iteration, request);
  const series = seriesOf(request);
  const known = knownAnswer(task, number, series);
  if (known !== undefined) return answerWith(tx.state, iteration, known);
  const total = splitCount(splits.bounds, 0);
  const sequence = task.completed
    ? undefined
    : nextSequence(orderedOf(iteration), splits, request, windowSplits);
  if (sequence === undefined) return { split: null, total };
  tx.append({ type: "sequence_assigned", taskId, sequence, number, series });
  return answerWith(tx.state, iteration, sequence);
}

/** Which of the task's two series the request belongs to. */
function seriesOf({ spare }: SplitRequest): number {
  return spare === true ? SPARE_SERIES : 0;
}

/** The split at a position in the order. */
function answerWith(
  state: DispatcherState,
  iteration: Iteration,
  sequence: number,
): SplitAnswer {
  const { bounds } = iteration.splits!;
  const index = orderOf(state, iteration)[sequence]!;
  return { split: { ...splitAt(bounds, 0, index), index, sequence }, total: splitCount(bounds, 0) };
}

/**
 * Records which splits a reader has. Its reports repeat those beyond the mark; only new ones are
 * journaled, so that no reader makes the journal grow by more than its splits. They count for the
 * job's owner: several consumers may name splits that only another one's start lets them have. Those
 * that would take too much memory are not noted, until the mark has passed them: if their task ends
 * before, they are produced again.
 * @throws {LeatError} `invalid_argument` for splits that the reader cannot have.
 */
export function noteReceived(
  tx: Transaction,
  iteration: Iteration,
  { consumerIndex }: Client,
  { mark, done }: Pick<OrderedReport, "mark" | "done">,
  quotas: Quotas,
): void {
  const ordered = orderedOf(iteration);
  const known = ordered.consumers?.reading[consumerIndex ?? 0] ?? ordered;
  if (mark < known.mark) return;
  const unknown = done.filter((at) => !has(known.done, at));
  if (mark === known.mark && unknown.length === 0) return;
  checkReceived(iteration, ordered, mark, done);
  const { iterationId, jobId } = iteration;
  const { owner } = tx.state.jobs.get(jobId)!;
  const mayKeep = mayKeepReport(tx.state, owner, unknown.length * PLACE_BYTES, quotas);
  const news = mayKeep ? unknown : [];
  if (mark === known.mark && news.length === 0) return;
  tx.append({
    type: "sequences_received",
    iterationId,
    mark,
    done: news,
    ...(consumerIndex === null ? {} : { consumerIndex }),
  });
}

/**
 * Refuses splits that the reader cannot have: they are journaled.
 * @throws {LeatError} `invalid_argument`
 */
function checkReceived(
  { iterationId, splits }: Iteration,
  ordered: Ordered,
  mark: number,
  done: readonly number[],
): void {
  // `next` is beyond the table if the reader was restored from a longer one. It detects that
  // itself. A restored consumer may start beyond `next`, so its mark may be there.
  const stop = Math.max(ordered.next, splits === null ? 0 : splitCount(splits.bounds, 0));
  const isAscending = (at: number, i: number) => at > (done[i - 1] ?? mark - 1);
  if (mark <= stop && done.every(isAscending) && done.every(wasAssignedIn(ordered))) return;
  throw new LeatError(
    "invalid_argument",
    `mark and done must be ascending positions among the ${stop} splits of iteration ${iterationId}, ` +
      `and those of done must have been assigned, ` +
      `got ${[mark, ...done.slice(0, PLACES_SHOWN)].join(", ")}`,
  );
}

/** Tells whether a split may have been assigned. */
function wasAssignedIn(
  { next, done, assigned, lost, consumers }: Ordered,
): (at: number) => boolean {
  if (consumers !== null) return (at) => at < next;
  // A restored reader starts at `next`. Only some of the splits before it are assigned.
  const sequences = new Set(assigned.map(({ sequence }) => sequence));
  return (at) => sequences.has(at) || has(done, at) || has(lost, at);
}

/** Whether more splits exist, but none may be assigned before all readers have advanced. */
export function isHeldUp({ ordered, splits }: Iteration, windowSplits: number): boolean {
  if (ordered === null || splits === null) return false;
  const { lost, next, mark } = ordered;
  const total = splitCount(splits.bounds, 0);
  return next < total && mark + windowSplits <= next && total <= (lowest(lost) ?? Infinity);
}

/** The next split to assign. Lost splits come first: the reader waits for one of them. */
function nextSequence(
  { lost, next, mark, assigned }: Ordered,
  { bounds }: Splits,
  { taskId, spare }: SplitRequest,
  windowSplits: number,
): number | undefined {
  const total = splitCount(bounds, 0);
  // The reader may have been restored from a longer table, to positions that do not exist.
  const lowestLost = lowest(lost);
  const lostSplit = lowestLost !== undefined && lowestLost < total ? lowestLost : undefined;
  if (spare === true) {
    const isOfOtherOrLater = (at: Ordered["assigned"][number]) =>
      at.taskId !== taskId || at.sequence > lostSplit!;
    return lostSplit !== undefined && assigned.every(isOfOtherOrLater) ? lostSplit : undefined;
  }
  if (lostSplit !== undefined) return lostSplit;
  return next < Math.min(mark + windowSplits, total) ? next : undefined;
}

const orders = new WeakMap<Splits, Uint32Array>();

/**
 * The indices of splits in the table, in stream order. Derived from journaled values, and cached.
 */
export function orderOf(state: DispatcherState, iteration: Iteration): Uint32Array {
  const splits = iteration.splits!;
  let order = orders.get(splits);
  if (order === undefined) {
    const { ordered } = parametersOf(state, iteration);
    const seed: OrderSeed = {
      seed: BigInt(`0x${ordered!.seed}`),
      epoch: iteration.repetition,
      shuffled: ordered!.shuffled,
    };
    order = splitOrder(splitCount(splits.bounds, 0), seed);
    orders.set(splits, order);
  }
  return order;
}

function orderedOf({ iterationId, ordered }: Iteration): Ordered {
  if (ordered !== null) return ordered;
  throw new LeatError("internal", `The splits of iteration ${iterationId} have no order`);
}
