/**
 * Checks that a task that kills its runners is stopped. Across all restarts, the number of new runners
 * is below the number of deaths that fail the job, and no worker gets a task of a failed job. Nor does
 * one list a failed job's splits.
 */
import type { JournalRecord, RecordOf } from "../../actors/dispatcher/journal/records.ts";
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import type { FencedRef, Ref } from "../../actors/runtime/ref.ts";
import type { AnswerOf, RequestOf } from "../../actors/runtime/protocol.ts";
import type { Findings } from "./checker.ts";
import type { RecordWatcher } from "./journal.ts";

type DeathRequest = RequestOf<DispatcherProtocol, "runnerDied">;
type DeathAnswer = AnswerOf<DispatcherProtocol, "runnerDied">;

/** Watches the one job of a run whose runners die. */
export class PoisonChecker implements RecordWatcher {
  readonly #findings: Findings;
  readonly #deathsMax: number;
  /** Reports of deaths, by the asker and the ask's id. */
  readonly #asked = new Map<string, DeathRequest>();
  /** Deaths after which a task got another runner. */
  readonly #allowed = new Set<string>();
  readonly #failed = new Set<number>();
  /** Journaled deaths of runners that listed splits, by iteration. */
  readonly #listers = new Map<number, number>();

  /** @param deathsMax Number of deaths that fail the job. */
  constructor(findings: Findings, deathsMax: number) {
    this.#findings = findings;
    this.#deathsMax = deathsMax;
  }

  /** An observer for `ActorSystem.inspect` of the dispatcher's node. */
  readonly observe = (event: InspectionEvent): void => {
    if (event.type === "deliver" && event.envelope.kind === "ask") {
      const { source, id, method, body } = event.envelope;
      if (method === "runnerDied") this.#asked.set(keyOf(source, id), body as DeathRequest);
    } else if (event.type === "send" && event.envelope.kind === "reply") {
      const { target, id, body } = event.envelope;
      const asked = this.#asked.get(keyOf(target, id));
      if (asked !== undefined && (body as DeathAnswer).mayStart) this.#allow(asked);
    }
  };

  journaled(record: JournalRecord): void {
    if (record.type === "iteration_failed") this.#failed.add(record.iterationId);
    if (record.type === "lister_died") this.#countLister(record, 1);
    if (record.type !== "task_created" || !this.#failed.has(record.iterationId)) return;
    const { taskId, iterationId, worker } = record;
    this.#findings.add(
      `${worker} was given task ${taskId} of iteration ${iterationId}, which failed`,
    );
  }

  /** Forgets what is not on disk, because the job's tasks may be assigned again. */
  lost(records: readonly JournalRecord[]): void {
    for (const record of records) {
      if (record.type === "iteration_failed") this.#failed.delete(record.iterationId);
      if (record.type === "lister_died") this.#countLister(record, -1);
    }
  }

  #countLister({ iterationId, worker }: RecordOf<"lister_died">, change: 1 | -1): void {
    const deaths = (this.#listers.get(iterationId) ?? 0) + change;
    this.#listers.set(iterationId, deaths);
    if (change < 0 || deaths <= this.#deathsMax) return;
    this.#findings.add(
      `listing killed runner ${deaths}, of ${worker}, where ${this.#deathsMax} fail the job`,
    );
  }

  #allow({ taskId, number }: DeathRequest): void {
    this.#allowed.add(`${taskId}/${number}`);
    if (this.#allowed.size < this.#deathsMax) return;
    this.#findings.add(
      `after ${this.#allowed.size} deaths another runner was allowed, where ${this.#deathsMax} fail the job`,
    );
  }
}

function keyOf({ node, path, incarnation }: Ref | FencedRef, id: number): string {
  return `${node} ${path} ${incarnation} ${id}`;
}
