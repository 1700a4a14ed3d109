/**
 * Tracks in the dispatcher's journal which task owns each split. No split may have two owners. Under
 * DYNAMIC, no split may be assigned again.
 */
import type { JournalRecord } from "../../../actors/dispatcher/journal/records.ts";

type RecordOf<T extends JournalRecord["type"]> = Extract<JournalRecord, { readonly type: T }>;

/** A range of splits of one task. */
interface Run {
  readonly taskId: number;
  readonly first: number;
  readonly stop: number;
}

/** A consumer that reads or is expected, and the splits that it does not need any more. */
interface Consumer {
  /** It needs no split before this position, and none of `done`. */
  mark: number;
  readonly done: Set<number>;
}

/** Tracks the splits of all iterations. */
export class SplitOwners {
  /** The iteration of each task. */
  readonly #iterations = new Map<number, number>();
  /** The tasks that have ended. */
  readonly #ended = new Set<number>();
  /** DYNAMIC: the task of each split, by iteration, source, repetition and split. */
  readonly #dynamic = new Map<string, number>();
  /** DETERMINISTIC: the task of each position, by iteration and position. */
  readonly #ordered = new Map<number, Map<number, number>>();
  readonly #numConsumers = new Map<number, number>();
  /** DETERMINISTIC: the consumers that have not left, by iteration and index. */
  readonly #consumers = new Map<number, Map<number, Consumer>>();
  /** The consumer of each client. */
  readonly #clients = new Map<number, { readonly iterationId: number; readonly index: number }>();
  /** The runs of a save, by iteration. */
  readonly #runs = new Map<number, Run[]>();

  /** Applies a journaled record. Returns the violation, if there is one. */
  note(record: JournalRecord): string | undefined {
    switch (record.type) {
      case "job_created":
        this.#numConsumers.set(record.jobId, record.parameters.numConsumers ?? 0);
        return undefined;
      case "iteration_created":
        this.#begin(record);
        return undefined;
      case "task_created":
        this.#iterations.set(record.taskId, record.iterationId);
        return undefined;
      // A task that gets no more splits also returns those that it has.
      case "task_completed":
      case "task_ended":
        this.#ended.add(record.taskId);
        return undefined;
      case "client_opened":
        this.#join(record);
        return undefined;
      case "client_released":
        this.#leave(record);
        return undefined;
      case "sequences_received":
        this.#receive(record);
        return undefined;
      case "split_assigned": {
        const { taskId, source, repetition, index } = record;
        const split = `split ${repetition}/${source}/${index} of ${this.#iterationOf(taskId)}`;
        const owner = this.#dynamic.get(split);
        this.#dynamic.set(split, taskId);
        return owner === undefined ? undefined : twice(split, taskId, owner);
      }
      case "sequence_assigned": {
        const { taskId, sequence } = record;
        const split = `split ${sequence} of ${this.#iterationOf(taskId)}`;
        const owner = this.#assignPosition(taskId, sequence);
        return owner === undefined ? undefined : twice(split, taskId, owner);
      }
      case "save_run_assigned":
        return this.#assignRun(record.taskId, record.first, record.count);
      case "save_run_written": {
        const iterationId = this.#iterations.get(record.taskId)!;
        const others = this.#runsOf(iterationId).filter(({ taskId }) => taskId !== record.taskId);
        this.#runs.set(iterationId, others);
        return undefined;
      }
      default:
        return undefined;
    }
  }

  /**
   * Expects all consumers of an iteration. They may need every split after the position where the first
   * consumer starts.
   */
  #begin({ iterationId, jobId, startAt, behind = [] }: RecordOf<"iteration_created">): void {
    if (startAt === undefined) return;
    const [mark = startAt] = behind;
    const consumers = new Map<number, Consumer>();
    const count = this.#numConsumers.get(jobId) ?? 0;
    for (let index = 0; index < count; index++) consumers.set(index, { mark, done: new Set() });
    this.#consumers.set(iterationId, consumers);
  }

  /**
   * Adds a consumer. It gets again the splits that it needs, even those that all consumers, itself
   * included, had received.
   */
  #join(record: RecordOf<"client_opened">): void {
    const { clientId, iterationId, consumerIndex: index, startAt = 0, behind = [] } = record;
    const consumers = this.#consumers.get(iterationId);
    if (index === null || consumers === undefined) return;
    const [mark = startAt] = behind;
    const joining: Consumer = { mark, done: new Set() };
    for (let at = mark; at < startAt; at++) if (!behind.includes(at)) joining.done.add(at);
    const owners = this.#ordered.get(iterationId);
    for (const sequence of owners?.keys() ?? []) {
      const isReceived = consumers.values().every((consumer) => has(consumer, sequence));
      if (isReceived && !has(joining, sequence)) owners!.delete(sequence);
    }
    consumers.set(index, joining);
    this.#clients.set(clientId, { iterationId, index });
  }

  /** Removes a consumer. It does not return, so no split is repeated for it. */
  #leave({ clientId }: RecordOf<"client_released">): void {
    const { iterationId, index } = this.#clients.get(clientId) ?? {};
    if (iterationId !== undefined) this.#consumers.get(iterationId)?.delete(index!);
    this.#clients.delete(clientId);
  }

  #receive({ iterationId, consumerIndex, mark, done }: RecordOf<"sequences_received">): void {
    const consumer = this.#consumers.get(iterationId)?.get(consumerIndex ?? -1);
    if (consumer === undefined) return;
    consumer.mark = Math.max(consumer.mark, mark);
    for (const at of done) consumer.done.add(at);
  }

  #iterationOf(taskId: number): string {
    return `iteration ${this.#iterations.get(taskId)}`;
  }

  /** Assigns a position. Returns the previous owner if it may still produce the position. */
  #assignPosition(taskId: number, sequence: number): number | undefined {
    const iterationId = this.#iterations.get(taskId)!;
    const owners = this.#ordered.get(iterationId) ?? new Map<number, number>();
    this.#ordered.set(iterationId, owners);
    const owner = owners.get(sequence);
    owners.set(sequence, taskId);
    return owner === undefined || this.#ended.has(owner) ? undefined : owner;
  }

  /** Assigns a range of splits. Returns the violation, if another task owns some of them. */
  #assignRun(taskId: number, first: number, count: number): string | undefined {
    const iterationId = this.#iterations.get(taskId)!;
    const stop = first + count;
    const runs = this.#runsOf(iterationId);
    this.#runs.set(iterationId, [...runs, { taskId, first, stop }]);
    const other = runs.find((run) => run.first < stop && first < run.stop);
    if (other === undefined) return undefined;
    return `splits ${first} to ${stop} of ${
      this.#iterationOf(taskId)
    } were given to task ${taskId}, though ` +
      `task ${other.taskId} has ${other.first} to ${other.stop}`;
  }

  #runsOf(iterationId: number): Run[] {
    return (this.#runs.get(iterationId) ?? []).filter(({ taskId }) => !this.#ended.has(taskId));
  }
}

function has({ mark, done }: Consumer, sequence: number): boolean {
  return sequence < mark || done.has(sequence);
}

function twice(split: string, taskId: number, owner: number): string {
  return `${split} was given to task ${taskId}, though task ${owner} has it`;
}
