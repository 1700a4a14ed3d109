/** DYNAMIC: each split is assigned once, to whichever task asks first. */
import type { TaskOfIteration } from "../state/entities.ts";
import { assignNextSplit, type SplitAnswer, type SplitRequest, splitsFor } from "./splits.ts";
import { knownAnswer } from "./split_requests.ts";
import type { Transaction } from "../transaction.ts";
import { Mode } from "./mode.ts";

export class DynamicMode extends Mode {
  override readonly needsSplits = true;

  override assignSplit(
    tx: Transaction,
    { task, iteration }: TaskOfIteration,
    request: SplitRequest,
  ): SplitAnswer {
    const splits = splitsFor(iteration, request);
    const { number, source, count = 1 } = request;
    const numbers = Array.from({ length: count }, (_, i) => number + i);
    // Before the first assignment: a request that is refused must assign nothing.
    const known = numbers.map((number) => knownAnswer(task, number, source));
    const next = (i: number) =>
      assignNextSplit(tx, splits, { ...request, number: numbers[i]! }, known[i]);
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
