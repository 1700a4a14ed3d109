/**
 * Handing out splits first come first served (DYNAMIC): each to one task, once.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { AnswerOf, RequestOf } from "../runtime/protocol.ts";
import type { Iteration, Splits, Task } from "./entities.ts";
import { parametersOf } from "./iterations.ts";
import { type ShardingMode, ShardingPolicy } from "../../data/sharding_policy.ts";
import { answerWith, assignSequence, isOrdered, seriesOf } from "./ordered.ts";
import { type DispatcherProtocol, TASK_ENDED } from "./protocol.ts";
import { knownAnswer } from "./split_requests.ts";
import { splitAt, splitCount } from "./split_table.ts";
import type { Turn } from "./turn.ts";

type SplitRequest = RequestOf<DispatcherProtocol, "getSplit">;
type SplitAnswer = AnswerOf<DispatcherProtocol, "getSplit">;

/** Whether the workers of a job ask for splits. */
export function handsOutSplits(processingMode: ShardingMode): boolean {
  return processingMode === ShardingPolicy.DYNAMIC ||
    processingMode === ShardingPolicy.DETERMINISTIC;
}

/**
 * See `DispatcherProtocol.getSplit`. The iteration's splits have to be listed before.
 *
 * @param windowSplits DETERMINISTIC: how far beyond the reader's mark they are handed out.
 */
export function assignSplit(turn: Turn, request: SplitRequest, windowSplits: number): SplitAnswer {
  const { taskId, number, source, repetition } = request;
  const [task, iteration] = taskOf(turn, taskId);
  const ordered = isOrdered(turn.state, iteration);
  if (iteration.error !== null) throw LeatError.fromWire(iteration.error);
  const { splits } = iteration;
  if (splits === null) {
    throw new LeatError("unavailable", `The splits for task ${taskId} are not listed yet`);
  }
  checkRequest(splits, request);
  const total = splitCount(splits.bounds, source);
  const series = ordered ? seriesOf(request) : source;
  const known = knownAnswer(task, request.number, series);
  if (known !== undefined) {
    return ordered
      ? answerWith(turn.state, iteration, known)
      : answerOf(splits, source, known, total);
  }
  if (ordered) return assignSequence(turn, iteration, request, windowSplits);
  const cursor = splits.cursors[source]!;
  // An earlier repetition is over for everybody; a later one begins for everybody.
  const index = repetition > cursor.repetition ? 0 : cursor.next;
  if (repetition < cursor.repetition || index >= total) return { split: null, total };
  turn.commit({ type: "split_assigned", taskId, source, repetition, index, number });
  return answerOf(splits, source, index, total);
}

function taskOf({ state }: Turn, taskId: number): [Task, Iteration] {
  const task = state.tasks.get(taskId);
  const iteration = state.iterations.get(task?.iterationId ?? -1);
  if (task === undefined || iteration === undefined) {
    throw new LeatError("failed_precondition", `Task ${taskId} has ended: it gets no more splits`, {
      details: { reason: TASK_ENDED },
    });
  }
  const { processingMode } = parametersOf(state, iteration);
  if (!handsOutSplits(processingMode)) {
    throw new LeatError(
      "invalid_argument",
      `Task ${taskId} is sharded "${processingMode}"; splits are handed out only under ` +
        `"${ShardingPolicy.DYNAMIC}" and "${ShardingPolicy.DETERMINISTIC}"`,
    );
  }
  return [task, iteration];
}

function checkRequest(splits: Splits, { taskId, number, source, repetition }: SplitRequest): void {
  if (number >= 1 && splits.bounds[source] !== undefined) return;
  throw new LeatError(
    "invalid_argument",
    `Task ${taskId} asks for split request ${number} of source ${source} in repetition ${repetition}, ` +
      `but requests count from 1, repetitions from 0, and the dataset has ${splits.bounds.length} ` +
      `sources`,
  );
}

function answerOf(splits: Splits, source: number, index: number, total: number): SplitAnswer {
  return { split: { ...splitAt(splits.bounds, source, index), index }, total };
}
