/**
 * Handing out splits under DETERMINISTIC: each has a place in the order of the stream, is handed out
 * first come first served within a window beyond what the reader has, and again where the task that
 * was producing it has ended.
 *
 * @module
 */
import type { OrderSeed } from "../../../../data/deterministic/order.ts";
import { splitOrder } from "../../../../data/deterministic/order.ts";
import { LeatError } from "../../../../core/error.ts";
import type { Client, Iteration, Splits, TaskOfIteration } from "../../state/entities.ts";
import type { Ordered } from "../mode_state.ts";
import { parametersOf } from "../../jobs/iterations.ts";
import { SPARE_SERIES } from "../../protocol.ts";
import { isNew, knownAnswer } from "../split_requests.ts";
import { splitAt, splitCount } from "../../state/split_table.ts";
import { type SplitAnswer, type SplitRequest, splitsFor } from "../splits.ts";
import type { DispatcherState } from "../../state/state.ts";
import type { Transaction } from "../../transaction.ts";

/** Places that a refusal shows. */
const PLACES_SHOWN = 10;

/** Whether the reader has all splits. */
export function isReceived({ ordered, splits }: Iteration): boolean {
  return ordered !== null && splits !== null && ordered.mark >= splitCount(splits.bounds, 0);
}

/**
 * Whether a request can be answered now: as it was before, or with a split, or with none, because the
 * reader has all or the task takes no more.
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

/** Hands out the first split there is to hand out; null when none is wanted of this task. */
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
  tx.commit({ type: "sequence_assigned", taskId, sequence, number, series });
  return answerWith(tx.state, iteration, sequence);
}

/** Which of the task's two series of requests this is of. */
function seriesOf({ spare }: SplitRequest): number {
  return spare === true ? SPARE_SERIES : 0;
}

/** The split at a place in the order. */
function answerWith(
  state: DispatcherState,
  iteration: Iteration,
  sequence: number,
): SplitAnswer {
  const { bounds } = iteration.splits!;
  const index = orderOf(state, iteration)[sequence]!;
  return { split: { ...splitAt(bounds, 0, index), index, sequence }, total: splitCount(bounds, 0) };
}

/** Notes what a reader says it has. */
export function noteReceived(
  tx: Transaction,
  iteration: Iteration,
  { consumerIndex }: Client,
  { mark, done = [] }: { readonly mark?: number; readonly done?: readonly number[] },
): void {
  const ordered = orderedOf(iteration);
  const known = ordered.consumers?.[consumerIndex ?? 0] ?? ordered;
  if (mark === undefined || mark < known.mark) return;
  const knownDone = new Set(known.done);
  const isNews = mark > known.mark || done.some((at) => !knownDone.has(at));
  if (!isNews) return;
  checkReceived(iteration, ordered, mark, done);
  const { iterationId } = iteration;
  tx.commit({
    type: "sequences_received",
    iterationId,
    mark,
    done,
    ...(consumerIndex === null ? {} : { consumerIndex }),
  });
}

/** Nobody can have what there is not; what is noted of it would have to be looked through. */
function checkReceived(
  { iterationId, splits }: Iteration,
  { next }: Ordered,
  mark: number,
  done: readonly number[],
): void {
  // One that was restored to a place in a longer table finds out by itself.
  const stop = Math.max(next, splits === null ? 0 : splitCount(splits.bounds, 0));
  const isNext = (at: number, i: number) => at > (done[i - 1] ?? mark - 1) && at < stop;
  if (mark <= stop && done.every(isNext)) return;
  throw new LeatError(
    "invalid_argument",
    `mark and done must be places among the ${stop} splits of iteration ${iterationId}, ascending, ` +
      `got ${[mark, ...done.slice(0, PLACES_SHOWN)].join(", ")}`,
  );
}

/** Whether there is more to hand out, but none of it before all readers have more of what was. */
export function isHeldUp({ ordered, splits }: Iteration, windowSplits: number): boolean {
  if (ordered === null || splits === null) return false;
  const { lost: [lowest = Infinity], next, mark } = ordered;
  const total = splitCount(splits.bounds, 0);
  return next < total && mark + windowSplits <= next && total <= lowest;
}

/** Lost splits come first: the reader waits for one of them. */
function nextSequence(
  { lost, next, mark, assigned }: Ordered,
  { bounds }: Splits,
  { taskId, spare }: SplitRequest,
  windowSplits: number,
): number | undefined {
  const total = splitCount(bounds, 0);
  // A reader may have been restored to a place in a table that was longer.
  const lowest = lost[0]! < total ? lost[0] : undefined;
  if (spare === true) {
    const isHigher = (at: Ordered["assigned"][number]) =>
      at.taskId !== taskId || at.sequence > lowest!;
    return lowest !== undefined && assigned.every(isHigher) ? lowest : undefined;
  }
  if (lowest !== undefined) return lowest;
  return next < Math.min(mark + windowSplits, total) ? next : undefined;
}

const orders = new WeakMap<Splits, Uint32Array>();

/** The places in their table of the splits, in order. Computed when it is first needed, and again after a restart: it follows from what is journaled. */
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
