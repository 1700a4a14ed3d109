/**
 * Tracks by the dispatcher's journal which task owns each split: no split has two owners, and under
 * DYNAMIC none is assigned again.
 */
import type { JournalRecord } from "../../../actors/dispatcher/journal/records.ts";

type RecordOf<T extends JournalRecord["type"]> = Extract<JournalRecord, { readonly type: T }>;

/** A range of splits of one task. */
interface Run {
  readonly taskId: number;
  readonly first: number;
  readonly stop: number;
}

/** A consumer that reads or is expected, and the splits that it needs no more. */
interface Consumer {
  /** It needs no split before this one, and none of `done`. */
  mark: number;
  readonly done: Set<number>;
}

/** Tracks the splits of all iterations. */
export class SplitOwners {
  readonly #iterations = new Map<number, number>();
  readonly #ended = new Set<number>();
  /** By iteration, source, repetition and split. */
  readonly #dynamic = new Map<string, number>();
  /** DETERMINISTIC: by iteration and position. */
  readonly #ordered = new Map<number, Map<number, number>>();
  readonly #numConsumers = new Map<number, number>();
  /** DETERMINISTIC: by iteration and index, until they leave. */
  readonly #consumers = new Map<number, Map<number, Consumer>>();
  /** The consumer of each client. */
  readonly #clients = new Map<number, { readonly iterationId: number; readonly index: number }>();
  /** The runs of a save, by iteration. */
  readonly #runs = new Map<number, Run[]>();

  /** Applies a journaled record; returns the violation, if there is one. */
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
      // A task that takes no more splits also returns those that it has.
      case "task_completed":
      case "task_ended":
        this.#ended.add(record.taskId);
        return undefined;
      case "client_opened":
        this.#come(record);
        return undefined;
      case "client_released":
        this.#leave(record);
        return undefined;
      case "sequences_received":
        this.#receive(record);
        return undefined;
      case "split_assigned": {
        const { taskId, source, repetition, index } = record;
        const split = `split ${repetition}/${source}/${index} of ${this.#of(taskId)}`;
        const owner = this.#dynamic.get(split);
        this.#dynamic.set(split, taskId);
        return owner === undefined ? undefined : twice(split, taskId, owner);
      }
      case "sequence_assigned": {
        const { taskId, sequence } = record;
        const split = `split ${sequence} of ${this.#of(taskId)}`;
        const owner = this.#giveOrdered(taskId, sequence);
        return owner === undefined ? undefined : twice(split, taskId, owner);
      }
      case "save_run_assigned":
        return this.#giveRun(record.taskId, record.first, record.count);
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
   * All consumers are expected, and may need everything after the position where the first one
   * starts.
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
   * A consumer that joins gets again what it needs, even if all, itself included, counted as done.
   */
  #come(record: RecordOf<"client_opened">): void {
    const { clientId, iterationId, consumerIndex: index, startAt = 0, behind = [] } = record;
    const consumers = this.#consumers.get(iterationId);
    if (index === null || consumers === undefined) return;
    const [mark = startAt] = behind;
    const comer: Consumer = { mark, done: new Set() };
    for (let at = mark; at < startAt; at++) if (!behind.includes(at)) comer.done.add(at);
    const owners = this.#ordered.get(iterationId);
    for (const sequence of owners?.keys() ?? []) {
      const isHad = consumers.values().every((consumer) => has(consumer, sequence));
      if (isHad && !has(comer, sequence)) owners!.delete(sequence);
    }
    consumers.set(index, comer);
    this.#clients.set(clientId, { iterationId, index });
  }

  /** The consumer does not come back, so nothing is repeated for it. */
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

  #of(taskId: number): string {
    return `iteration ${this.#iterations.get(taskId)}`;
  }

  /** Returns the task that owns the position and may still produce it. */
  #giveOrdered(taskId: number, sequence: number): number | undefined {
    const iterationId = this.#iterations.get(taskId)!;
    const owners = this.#ordered.get(iterationId) ?? new Map<number, number>();
    this.#ordered.set(iterationId, owners);
    const owner = owners.get(sequence);
    owners.set(sequence, taskId);
    return owner === undefined || this.#ended.has(owner) ? undefined : owner;
  }

  #giveRun(taskId: number, first: number, count: number): string | undefined {
    const iterationId = this.#iterations.get(taskId)!;
    const stop = first + count;
    const runs = this.#runsOf(iterationId);
    this.#runs.set(iterationId, [...runs, { taskId, first, stop }]);
    const other = runs.find((run) => run.first < stop && first < run.stop);
    if (other === undefined) return undefined;
    return `splits ${first} to ${stop} of ${
      this.#of(taskId)
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
