/**
 * Checks that readers of different runs of a training program never read the same iteration, and that no
 * reader of an earlier run joins after a reader of a later run.
 */
import type { JournalRecord, RecordOf } from "../../actors/dispatcher/journal/records.ts";
import type { Findings } from "./checker.ts";
import type { RecordWatcher } from "./journal.ts";

type ClientOpened = RecordOf<"client_opened">;

/** Watches one job. Either all readers name their runs, or none does. */
export class RunsChecker implements RecordWatcher {
  readonly #findings: Findings;
  /** The readers that name their runs, in the order in which they joined. */
  #opened: ClientOpened[] = [];

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  journaled(record: JournalRecord): void {
    if (record.type !== "client_opened" || record.runId === undefined) return;
    const { runId, clientId, iterationId } = record;
    this.#opened.push(record);
    const run = this.#opened.find((each) => each.iterationId === iterationId)?.runId;
    if (run !== runId) {
      this.#findings.add(`client ${clientId} of "${runId}" reads an iteration of "${run}"`);
    }
    const newest = [...new Set(this.#opened.map((each) => each.runId))].at(-1);
    if (newest !== runId) {
      this.#findings.add(`client ${clientId} of "${runId}" was let in after "${newest}"`);
    }
  }

  /** Forgets readers without a record on disk. They did not join, so another run may come first. */
  lost(records: readonly JournalRecord[]): void {
    const lost = new Set<number>();
    for (const record of records) if (record.type === "client_opened") lost.add(record.clientId);
    this.#opened = this.#opened.filter(({ clientId }) => !lost.has(clientId));
  }
}
