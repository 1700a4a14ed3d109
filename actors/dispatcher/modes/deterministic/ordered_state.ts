/** How records change the splits of a DETERMINISTIC iteration. */
import type { Ordered } from "../mode_state.ts";
import type { RecordOf } from "../../journal/records.ts";
import { survived } from "../../state/runner_deaths_state.ts";
import { noteRequest } from "../split_requests.ts";
import { need, type Tables } from "../../state/tables.ts";

/** Where a reader starts: at a split, with some before it whose rows it needs again. */
export interface StreamStart {
  readonly startAt: number;
  readonly behind?: readonly number[] | undefined;
}

/** The start of a stream. @param numConsumers Missing: it has one reader. */
export function orderedFrom({ startAt, behind = [] }: StreamStart, numConsumers?: number): Ordered {
  const [mark = startAt] = behind;
  const consumers = numConsumers === undefined
    ? null
    : Array.from({ length: numConsumers }, () => ({ state: "awaited" as const, mark, done: [] }));
  return { mark, next: startAt, assigned: [], done: [], lost: [...behind], consumers };
}

/** A consumer joins. Splits it needs that all others have, or do not need, are assigned again. */
export function join(ordered: Ordered, index: number, { startAt, behind = [] }: StreamStart): void {
  const [mark = startAt] = behind;
  const wanted = new Set(behind);
  const done: number[] = [];
  for (let at = mark; at < startAt; at++) if (!wanted.has(at)) done.push(at);
  Object.assign(ordered.consumers![index]!, { state: "reading", mark, done });
  const known = new Set([
    ...ordered.assigned.map(({ sequence }) => sequence),
    ...ordered.lost,
    ...done,
  ]);
  for (let at = mark; at < ordered.next; at++) if (!known.has(at)) ordered.lost.push(at);
  ordered.lost.sort((a, b) => a - b);
  receive(ordered, ...common(ordered));
}

/** A consumer has left: the others no longer wait for it. */
export function leave(ordered: Ordered, index: number): void {
  Object.assign(ordered.consumers![index]!, { state: "left", mark: 0, done: [] });
  receive(ordered, ...common(ordered));
}

/** A task has ended or takes no more: its splits that the reader lacks are produced again. */
export function lose(ordered: Ordered, taskId: number): void {
  const lost = ordered.assigned.filter((at) => at.taskId === taskId);
  ordered.assigned = ordered.assigned.filter((at) => at.taskId !== taskId);
  ordered.lost = [...ordered.lost, ...lost.map(({ sequence }) => sequence)].sort((a, b) => a - b);
}

export function assigned(
  { tasks, iterations }: Tables,
  record: RecordOf<"sequence_assigned">,
): void {
  const { taskId, sequence, series, number } = record;
  const task = need(tasks.get(taskId), record);
  const found = need(iterations.get(task.iterationId), record).ordered;
  const ordered = need(found ?? undefined, record);
  ordered.lost = ordered.lost.filter((at) => at !== sequence);
  ordered.assigned.push({ sequence, taskId });
  ordered.next = Math.max(ordered.next, sequence + 1);
  noteRequest(task, series, number, sequence);
}

/** The reader, or one of several, has these splits whole. */
export function received({ iterations }: Tables, record: RecordOf<"sequences_received">): void {
  const { iterationId, consumerIndex, mark, done } = record;
  const iteration = need(iterations.get(iterationId), record);
  const ordered = need(iteration.ordered ?? undefined, record);
  if (consumerIndex === undefined) receive(ordered, mark, done);
  else receiveFor(ordered, consumerIndex, mark, done);
  survived(iteration, (place) => place! < ordered.mark || ordered.done.includes(place!));
}

/** One of several readers has these splits whole. */
function receiveFor(
  ordered: Ordered,
  index: number,
  mark: number,
  done: readonly number[],
): void {
  const consumer = ordered.consumers![index]!;
  // Splits it never needed count as done since it joined, so they are not new.
  const news = new Set(done);
  const earlier = consumer.done.filter((at) => at >= mark && !news.has(at));
  Object.assign(consumer, { mark, done: [...earlier, ...done].sort((a, b) => a - b) });
  receive(ordered, ...common(ordered));
}

/** The reader has these splits whole: they need not be produced again. */
function receive(ordered: Ordered, mark: number, done: readonly number[]): void {
  const received = new Set(done);
  const isWanted = (sequence: number) => sequence >= mark && !received.has(sequence);
  ordered.mark = mark;
  ordered.next = Math.max(ordered.next, mark);
  ordered.done = done;
  ordered.assigned = ordered.assigned.filter(({ sequence }) => isWanted(sequence));
  ordered.lost = ordered.lost.filter(isWanted);
}

/** The splits that all present consumers have whole: all before a position, and some beyond it. */
function common(ordered: Ordered): [mark: number, done: readonly number[]] {
  const present = ordered.consumers!.filter(({ state }) => state !== "left");
  if (present.length === 0) return [ordered.mark, ordered.done];
  // The consumer with the lowest mark has reported all common splits beyond that mark.
  const { mark, done } = present.reduce((last, other) => other.mark < last.mark ? other : last);
  if (done.length === 0) return [mark, done];
  const had = present.map((consumer) => ({ mark: consumer.mark, done: new Set(consumer.done) }));
  const isCommon = (at: number) => had.every((each) => at < each.mark || each.done.has(at));
  return [mark, done.filter((at) => at > mark && isCommon(at))];
}
