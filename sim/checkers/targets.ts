/**
 * Checks that each worker serves only the clients that may read it: those whose jobs want its tags, and
 * if it is private, those of its own process.
 */
import type { JournalRecord } from "../../actors/dispatcher/journal/records.ts";
import type { TaskListNews } from "../../actors/dispatcher/protocol_heartbeats.ts";
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import type { Findings } from "./checker.ts";
import type { RecordWatcher } from "./journal.ts";

/** What a worker says of itself. */
export interface WorkerTarget {
  readonly tags: readonly string[];
  readonly process?: string;
  readonly isPrivate?: boolean;
}

/** Watches the one job of a run, and its clients. */
export class TargetsChecker implements RecordWatcher {
  readonly #findings: Findings;
  readonly #wanted: readonly string[];
  readonly #processes: readonly string[];
  readonly #workers = new Map<string, WorkerTarget>();

  /**
   * @param wanted The tags that the job wants.
   * @param processes The processes of its clients.
   */
  constructor(findings: Findings, wanted: readonly string[], processes: readonly string[]) {
    this.#findings = findings;
    this.#wanted = wanted;
    this.#processes = processes;
  }

  /** A worker starts under that name. */
  worker(name: string, target: WorkerTarget): void {
    this.#workers.set(name, target);
  }

  /** An observer for `ActorSystem.inspect` of the node of a client of that process. */
  client(process: string): (event: InspectionEvent) => void {
    return (event) => {
      if (event.type !== "deliver" || event.envelope.kind !== "reply") return;
      const { kind, tasks = [] } = event.envelope.body as Partial<TaskListNews> | null ?? {};
      if (kind !== "whole" && kind !== "changes") return;
      for (const { worker } of tasks) {
        if (!this.#mayRead(worker, [process])) {
          this.#findings.add(`a client of process ${process} was given a task of ${worker}`);
        }
      }
    };
  }

  journaled(record: JournalRecord): void {
    if (record.type !== "task_created" || this.#mayRead(record.worker, this.#processes)) return;
    this.#findings.add(`${record.worker} was given a task, though no client may read it`);
  }

  lost(): void {}

  #mayRead(worker: string, processes: readonly string[]): boolean {
    const { tags, process, isPrivate = false } = this.#workers.get(worker)!;
    if (!this.#wanted.every((tag) => tags.includes(tag))) return false;
    return !isPrivate || process !== undefined && processes.includes(process);
  }
}
