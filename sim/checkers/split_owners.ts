/**
 * Who has which split, by what a dispatcher journals: none belongs to two tasks at a time, and under
 * DYNAMIC none is ever given again.
 *
 * @module
 */
import type { JournalRecord } from "../../actors/dispatcher/records.ts";

/** Splits from one up to another that one task has. */
interface Run {
  readonly taskId: number;
  readonly first: number;
  readonly stop: number;
}

/** See the module. */
export class SplitOwners {
  readonly #iterations = new Map<number, number>();
  readonly #ended = new Set<number>();
  /** By iteration, source, repetition and split. */
  readonly #dynamic = new Map<string, number>();
  /** DETERMINISTIC: by iteration and place. */
  readonly #ordered = new Map<string, number>();
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
        // A consumer that was restored before the others is given again what these have.
        if (record.startAt !== undefined) this.#forget(record.iterationId);
        return undefined;
      case "split_assigned": {
        const { taskId, source, repetition, index } = record;
        const split = `split ${repetition}/${source}/${index} of ${this.#of(taskId)}`;
        return this.#give(this.#dynamic, split, taskId, () => true);
      }
      case "sequence_assigned": {
        const { taskId, sequence } = record;
        const split = `split ${sequence} of ${this.#of(taskId)}`;
        return this.#give(this.#ordered, split, taskId, (owner) => !this.#ended.has(owner));
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

  #forget(iterationId: number): void {
    for (const split of this.#ordered.keys()) {
      if (split.endsWith(` of iteration ${iterationId}`)) this.#ordered.delete(split);
    }
  }

  #of(taskId: number): string {
    return `iteration ${this.#iterations.get(taskId)}`;
  }

  #give(
    owners: Map<string, number>,
    split: string,
    taskId: number,
    keeps: (owner: number) => boolean,
  ): string | undefined {
    const owner = owners.get(split);
    owners.set(split, taskId);
    if (owner === undefined || !keeps(owner)) return undefined;
    return `${split} was given to task ${taskId}, though task ${owner} has it`;
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
