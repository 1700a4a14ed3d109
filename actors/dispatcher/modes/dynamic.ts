/** DYNAMIC: each split is assigned once, to whichever task asks first. */
import { splitCount } from "../../../data/sharding/split_table.ts";
import type { Splits, TaskOfIteration } from "../state/entities.ts";
import { assignNextSplit, type SplitAnswer, type SplitRequest, splitsFor } from "./splits.ts";
import { knownAnswer } from "./split_requests.ts";
import type { Transaction } from "../transaction.ts";
import { Mode } from "./mode.ts";

/**
 * A request gets at most a fourth of a task's even share of the remaining splits, so that all tasks
 * end at about the same time.
 */
const SHARE_FRACTION = 4;

export class DynamicMode extends Mode {
  override readonly needsSplits = true;

  override assignSplit(
    tx: Transaction,
    { task, iteration }: TaskOfIteration,
    request: SplitRequest,
  ): SplitAnswer {
    const splits = splitsFor(iteration, request);
    const { number, source, count: wanted = 1 } = request;
    const numbers = Array.from({ length: wanted }, (_, i) => number + i);
    // Before the first assignment: a request that is refused must assign nothing.
    const known = numbers.map((number) => knownAnswer(task, number, source));
    const next = (i: number) =>
      assignNextSplit(tx, splits, { ...request, number: numbers[i]! }, known[i]);
    // A repeated request gets the same splits, even if there were fewer than it wants.
    const granted = known.filter((split) => split !== undefined).length;
    const tasks = tx.state.tasksToComplete(iteration.iterationId);
    const count = granted > 0 ? granted : Math.min(wanted, fairCount(splits, request, tasks));
    const answer = next(0);
    const more: NonNullable<SplitAnswer["more"]>[number][] = [];
    for (let i = 1; answer.split !== null && i < count; i++) {
      const { split } = next(i);
      if (split === null) break;
      more.push(split);
    }
    return more.length === 0 ? answer : { ...answer, more };
  }
}

/** How many splits one of `tasks` tasks may get at once. An only task may get all. */
function fairCount(
  { bounds, cursors }: Splits,
  { source, repetition }: SplitRequest,
  tasks: number,
): number {
  const cursor = cursors[source]!;
  const assigned = repetition > cursor.repetition ? 0 : cursor.next;
  const left = splitCount(bounds, source) - assigned;
  return Math.max(1, tasks > 1 ? Math.ceil(left / (SHARE_FRACTION * tasks)) : left);
}
