/** DYNAMIC: splits are assigned first come first served, each to one task, once. */
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
    return assignNextSplit(tx, task, splitsFor(iteration, request), request);
  }
}
