/**
 * Who has which split, by what a dispatcher journals: none belongs to two tasks at a time, and under
 * DYNAMIC none is ever given again.
 *
 * @module
 */
import type { JournalRecord } from "../../actors/dispatcher/records.ts";

type Opened = Extract<JournalRecord, { readonly type: "client_opened" }>;
type Received = Extract<JournalRecord, { readonly type: "sequences_received" }>;

/** Splits from one up to another that one task has. */
interface Run {
  readonly taskId: number;
  readonly first: number;
  readonly stop: number;
}

/** A consumer that reads: what it has whole or wants nothing of, all before a split and some beyond. */
interface Consumer {
  readonly iterationId: number;
  readonly index: number;
  mark: number;
  readonly done: Set<number>;
}

/** See the module. */
export class SplitOwners {
  readonly #iterations = new Map<number, number>();
  readonly #ended = new Set<number>();
  /** By iteration, source, repetition and split. */
  readonly #dynamic = new Map<string, number>();
  /** DETERMINISTIC: by iteration, and by place. */
  readonly #ordered = new Map<number, Map<number, number>>();
  /** By client. */
  readonly #consumers = new Map<number, Consumer>();
  /** What is being saved, by iteration. */
  readonly #runs = new Map<number, Run[]>();

  /** A record was journaled; answers what is wrong with it, if anything is. */
  note(record: JournalRecord): string | undefined {
    switch (record.type) {
      case "task_created":
        this.#iterations.set(record.taskId, record.iterationId);
        return undefined;
      // One that takes no more gives back what it has, too.
      case "task_completed":
      case "task_ended":
        this.#ended.add(record.taskId);
        return undefined;
      case "client_opened":
        this.#come(record);
        return undefined;
      case "client_released":
        this.#consumers.delete(record.clientId);
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

  /** A consumer that begins before the others, saved or new, is given again what all of these have. */
  #come({ clientId, iterationId, consumerIndex, startAt = 0, behind = [] }: Opened): void {
    if (consumerIndex === null) return;
    const others = this.#consumers.values().filter((other) => other.iterationId === iterationId)
      .toArray();
    const owners = this.#ordered.get(iterationId);
    for (const sequence of owners?.keys() ?? []) {
      const isHad = others.every(({ mark, done }) => sequence < mark || done.has(sequence));
      if (isHad) owners!.delete(sequence);
    }
    const [mark = startAt] = behind;
    const done = new Set<number>();
    for (let at = mark; at < startAt; at++) if (!behind.includes(at)) done.add(at);
    this.#consumers.set(clientId, { iterationId, index: consumerIndex, mark, done });
  }

  #receive({ iterationId, consumerIndex, mark, done }: Received): void {
    for (const consumer of this.#consumers.values()) {
      if (consumer.iterationId !== iterationId || consumer.index !== consumerIndex) continue;
      consumer.mark = Math.max(consumer.mark, mark);
      for (const at of done) consumer.done.add(at);
    }
  }

  #of(taskId: number): string {
    return `iteration ${this.#iterations.get(taskId)}`;
  }

  /** Answers which task has it that may produce it still. */
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

function twice(split: string, taskId: number, owner: number): string {
  return `${split} was given to task ${taskId}, though task ${owner} has it`;
}
