/**
 * How the journal's records change the splits of a DETERMINISTIC iteration. Pure.
 *
 * @module
 */
import type { Ordered } from "./entities.ts";

/** The beginning, at a split; of some before it, the reader needs rows once more. */
export function orderedFrom(startAt: number, behind: readonly number[] = []): Ordered {
  const [mark = startAt] = behind;
  return { mark, next: startAt, assigned: [], done: [], lost: [...behind] };
}

/** A task produces the split from now on. */
export function assign(ordered: Ordered, sequence: number, taskId: number): void {
  ordered.lost = ordered.lost.filter((at) => at !== sequence);
  ordered.assigned.push({ sequence, taskId });
  ordered.next = Math.max(ordered.next, sequence + 1);
}

/** The reader has these splits whole: nobody need produce them any more. */
export function receive(ordered: Ordered, mark: number, done: readonly number[]): void {
  const isWanted = (sequence: number) => sequence >= mark && !done.includes(sequence);
  ordered.mark = mark;
  ordered.next = Math.max(ordered.next, mark);
  ordered.done = done;
  ordered.assigned = ordered.assigned.filter(({ sequence }) => isWanted(sequence));
  ordered.lost = ordered.lost.filter(isWanted);
}

/** A task has ended, or takes no more: what the reader does not have of it is to be produced again. */
export function lose(ordered: Ordered, taskId: number): void {
  const lost = ordered.assigned.filter((at) => at.taskId === taskId);
  ordered.assigned = ordered.assigned.filter((at) => at.taskId !== taskId);
  ordered.lost = [...ordered.lost, ...lost.map(({ sequence }) => sequence)].sort((a, b) => a - b);
}
