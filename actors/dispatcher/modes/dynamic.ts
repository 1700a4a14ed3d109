/** DYNAMIC: each split is assigned once, to whichever task asks first. */
import type { TaskOfIteration } from "../state/entities.ts";
import { assignNextSplit, type SplitAnswer, type SplitRequest, splitsFor } from "./splits.ts";
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
    const { number, count = 1 } = request;
    const answer = assignNextSplit(tx, task, splits, request);
    const more: NonNullable<SplitAnswer["more"]>[number][] = [];
    for (let i = 1; answer.split !== null && i < count; i++) {
      const { split } = assignNextSplit(tx, task, splits, { ...request, number: number + i });
      if (split === null) break;
      more.push(split);
    }
    return more.length === 0 ? answer : { ...answer, more };
  }
}
