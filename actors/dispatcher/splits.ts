/**
 * Handing out splits first come first served (DYNAMIC): each to one task, once.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { AnswerOf, RequestOf } from "../runtime/protocol.ts";
import { type Iteration, SPLIT_REQUESTS_KEPT, type Splits, type Task } from "./entities.ts";
import { parametersOf } from "./iterations.ts";
import { ShardingPolicy } from "../../data/sharding_policy.ts";
import { type DispatcherProtocol, TASK_ENDED } from "./protocol.ts";
import { splitAt, splitCount } from "./split_table.ts";
import type { Turn } from "./turn.ts";

type SplitRequest = RequestOf<DispatcherProtocol, "getSplit">;
type SplitAnswer = AnswerOf<DispatcherProtocol, "getSplit">;

/** See `DispatcherProtocol.getSplit`. The iteration's splits have to be listed before. */
export function assignSplit(turn: Turn, request: SplitRequest): SplitAnswer {
  const { taskId, number, source, repetition } = request;
  const [task, iteration] = taskOf(turn, taskId);
  if (iteration.splitsError !== null) throw LeatError.fromWire(iteration.splitsError);
  const { splits } = iteration;
  if (splits === null) {
    throw new LeatError("unavailable", `The splits for task ${taskId} are not listed yet`);
  }
  checkRequest(splits, request);
  const total = splitCount(splits.bounds, source);
  const known = knownAnswer(task, request);
  if (known !== undefined) return answerOf(splits, source, known, total);
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
  if (processingMode !== ShardingPolicy.DYNAMIC) {
    throw new LeatError(
      "invalid_argument",
      `Task ${taskId} is sharded "${processingMode}"; splits are handed out only under ` +
        `"${ShardingPolicy.DYNAMIC}"`,
    );
  }
  return [task, iteration];
}

function checkRequest(splits: Splits, { taskId, number, source, repetition }: SplitRequest): void {
  const valid = Number.isSafeInteger(number) && number >= 1 && Number.isSafeInteger(repetition) &&
    repetition >= 0 && splits.bounds[source] !== undefined;
  if (valid) return;
  throw new LeatError(
    "invalid_argument",
    `Task ${taskId} asks for split request ${number} of source ${source} in repetition ${repetition}, ` +
      `but requests count from 1, repetitions from 0, and the dataset has ${splits.bounds.length} ` +
      `sources`,
  );
}

/**
 * The split that this request was given before, if it was. Requests may overtake each other, so an
 * unknown number is old only when its place has been taken by a newer one.
 */
function knownAnswer(task: Task, { number, source }: SplitRequest): number | undefined {
  const ring = task.requests[source];
  if (ring === undefined) return undefined;
  const place = 2 * (number % SPLIT_REQUESTS_KEPT);
  const newest = ring[place]!;
  if (newest === number) return ring[place + 1];
  if (newest < number) return undefined;
  throw new LeatError(
    "failed_precondition",
    `Task ${task.taskId} repeats split request ${number} of source ${source} although it has made ` +
      `request ${newest}`,
  );
}

function answerOf(splits: Splits, source: number, index: number, total: number): SplitAnswer {
  return { split: { ...splitAt(splits.bounds, source, index), index }, total };
}
