/** Assigns splits. Without an order, each split goes once, to whichever task asks first. */
import { LeatError } from "../../../core/error.ts";
import type { AnswerOf, RequestOf } from "../../runtime/protocol.ts";
import type { Iteration, Splits } from "../state/entities.ts";
import { existingTask } from "../jobs/iterations.ts";
import { type DispatcherProtocol, OF_ITERATION } from "../protocol.ts";
import { splitAt, splitCount } from "../../../data/sharding/split_table.ts";
import type { Transaction } from "../transaction.ts";

export type SplitRequest = RequestOf<DispatcherProtocol, "getSplit">;
export type SplitAnswer = AnswerOf<DispatcherProtocol, "getSplit">;

/** Handles `DispatcherProtocol.getSplit`, once it can be answered. */
export function assignSplit(
  tx: Transaction,
  request: SplitRequest,
  windowSplits: number,
): SplitAnswer {
  const { state } = tx;
  const [task, iteration] = existingTask(state, request.taskId, "it gets no more splits");
  return state.modeOf(iteration).assignSplit(tx, { task, iteration }, request, windowSplits);
}

/**
 * The iteration's splits.
 * @throws {LeatError} the iteration's error; `unavailable` before the splits are listed;
 *   `invalid_argument` for a number or source that does not exist.
 */
export function splitsFor(
  { splits, error }: Iteration,
  { taskId, number, source, repetition }: SplitRequest,
): Splits {
  if (error !== null) {
    throw LeatError.fromWire({ ...error, details: { ...error.details, [OF_ITERATION]: true } });
  }
  if (splits === null) {
    throw new LeatError("unavailable", `The splits for task ${taskId} are not listed yet`);
  }
  if (number >= 1 && splits.bounds[source] !== undefined) return splits;
  throw new LeatError(
    "invalid_argument",
    `Task ${taskId} asks for split request ${number} of source ${source} in repetition ${repetition}, ` +
      `but requests count from 1, repetitions from 0, and the dataset has ${splits.bounds.length} ` +
      `sources`,
  );
}

/**
 * Assigns the next split of a source, first come first served.
 * @param known The split that was granted to this request before, if any.
 */
export function assignNextSplit(
  tx: Transaction,
  splits: Splits,
  { taskId, number, source, repetition }: SplitRequest,
  known: number | undefined,
): SplitAnswer {
  const total = splitCount(splits.bounds, source);
  if (known !== undefined) return answerOf(splits, source, known, total);
  const cursor = splits.cursors[source]!;
  // The first request of a later repetition starts it for all tasks, and ends the current one.
  const index = repetition > cursor.repetition ? 0 : cursor.next;
  if (repetition < cursor.repetition || index >= total) return { split: null, total };
  tx.append({ type: "split_assigned", taskId, source, repetition, index, number });
  return answerOf(splits, source, index, total);
}

function answerOf(splits: Splits, source: number, index: number, total: number): SplitAnswer {
  return { split: { ...splitAt(splits.bounds, source, index), index }, total };
}
