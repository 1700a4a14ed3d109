/** How records change the splits of a DETERMINISTIC iteration. */
import { addConsumer, commonPlaces, noConsumers, removeConsumers } from "./consumers_state.ts";
import { bytesOfPlaces } from "../../held_bytes.ts";
import type { Ordered, StreamPass } from "../mode_state.ts";
import { between, has, type Places, union, without } from "./places.ts";
import type { RecordOf } from "../../journal/records.ts";
import { survived } from "../../state/runner_deaths_state.ts";
import { noteRequest } from "../split_requests.ts";
import { need, type Tables } from "../../state/tables.ts";

/**
 * Where a reader starts. The splits in `behind` are before `startAt`: it needs their rows again.
 */
export interface StreamStart {
  readonly startAt: number;
  readonly behind?: readonly number[] | undefined;
}

/** The state at the start of a stream. @param numConsumers Missing if the stream has one reader. */
export function orderedFrom(
  { startAt, behind = [] }: StreamStart,
  numConsumers?: number,
  pass?: StreamPass,
): Ordered {
  const [mark = startAt] = behind;
  const consumers = numConsumers === undefined ? null : noConsumers(numConsumers, mark, pass);
  return { mark, next: startAt, assigned: [], done: [], lost: [...behind], consumers };
}

/** A consumer joins. Splits that it needs and that no task produces any more are assigned again. */
export function join(ordered: Ordered, index: number, { startAt, behind = [] }: StreamStart): void {
  const [mark = startAt] = behind;
  const done = without(between(mark, startAt), behind);
  addConsumer(ordered.consumers!, index, { mark, done });
  const inProduction = ordered.assigned.map(({ sequence }) => sequence).sort((a, b) => a - b);
  const needed = without(between(mark, ordered.next), union(done, inProduction));
  ordered.lost = union(ordered.lost, needed);
  receiveCommon(ordered);
}

/** Consumers have left: the others no longer wait for them. @param indices Ascending. */
export function leave(ordered: Ordered, indices: readonly number[]): void {
  removeConsumers(ordered.consumers!, indices);
  receiveCommon(ordered);
}

/**
 * A task has ended or takes no more splits. Its splits that the reader lacks are assigned again.
 */
export function lose(ordered: Ordered, taskId: number): void {
  const lost = ordered.assigned.filter((at) => at.taskId === taskId);
  ordered.assigned = ordered.assigned.filter((at) => at.taskId !== taskId);
  const sequences = lost.map(({ sequence }) => sequence).sort((a, b) => a - b);
  ordered.lost = union(ordered.lost, sequences);
}

export function assigned(
  { tasks, iterations }: Tables,
  record: RecordOf<"sequence_assigned">,
): void {
  const { taskId, sequence, series, number } = record;
  const task = need(tasks.get(taskId), record);
  const found = need(iterations.get(task.iterationId), record).ordered;
  const ordered = need(found ?? undefined, record);
  ordered.lost = without(ordered.lost, [sequence]);
  ordered.assigned.push({ sequence, taskId });
  ordered.next = Math.max(ordered.next, sequence + 1);
  noteRequest(task, series, number, sequence);
}

/** The reader, or one of several, has all elements of these splits. */
export function received(
  { iterations, heldBytes }: Tables,
  record: RecordOf<"sequences_received">,
): void {
  const { iterationId, consumerIndex, mark, done } = record;
  const iteration = need(iterations.get(iterationId), record);
  const ordered = need(iteration.ordered ?? undefined, record);
  const bytesOfReader = () =>
    bytesOfPlaces(
      (consumerIndex === undefined ? ordered : ordered.consumers!.reading[consumerIndex]!).done,
    );
  const before = bytesOfReader();
  if (consumerIndex === undefined) receive(ordered, mark, addDone(ordered.done, mark, done));
  else receiveFor(ordered, consumerIndex, mark, done);
  // Not counted as a whole, because there may be many consumers, and each reports often.
  heldBytes.grow(iteration, bytesOfReader() - before);
  survived(
    iteration,
    (place) => place === null || place < ordered.mark || has(ordered.done, place),
  );
}

/** One of several readers has all elements of these splits. */
function receiveFor(
  ordered: Ordered,
  index: number,
  mark: number,
  done: readonly number[],
): void {
  const { reading } = ordered.consumers!;
  reading[index] = { mark, done: addDone(reading[index]!.done, mark, done) };
  receiveCommon(ordered);
}

/** The splits beyond the mark that a reader has, with new ones. */
function addDone(known: Places, mark: number, more: Places): Places {
  return union(without(known, between(0, mark)), more);
}

/** All readers have these splits: they need not be produced again. */
function receive(ordered: Ordered, mark: number, done: Places): void {
  const received = union(between(0, mark), done);
  ordered.mark = mark;
  ordered.next = Math.max(ordered.next, mark);
  ordered.done = done;
  ordered.assigned = ordered.assigned.filter(({ sequence }) => !has(received, sequence));
  ordered.lost = without(ordered.lost, received);
}

/** Marks as received the splits that all consumers have. */
function receiveCommon(ordered: Ordered): void {
  const { mark, done } = commonPlaces(ordered.consumers!) ?? ordered;
  receive(ordered, mark, done);
}
