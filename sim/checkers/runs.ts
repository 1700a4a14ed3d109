/**
 * Checks that readers of two starts of a training program never read one iteration, and that no
 * reader of an earlier start joins after a later one.
 *
 * @module
 */
import type { JournalRecord } from "../../actors/dispatcher/journal/records.ts";
import type { Findings } from "./checker.ts";

/** Watches one job. Either all readers name their runs, or none does. */
export class RunsChecker {
  readonly #findings: Findings;
  /** The run of each iteration's first reader. */
  readonly #runs = new Map<number, string>();
  /** Runs in the order of their first appearance. */
  readonly #seen: string[] = [];

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** Watches the journal. */
  journaled(record: JournalRecord): void {
    if (record.type !== "client_opened" || record.runId === undefined) return;
    const { runId, clientId, iterationId } = record;
    const run = this.#runs.get(iterationId) ?? runId;
    this.#runs.set(iterationId, run);
    if (run !== runId) {
      this.#findings.add(`client ${clientId} of "${runId}" reads an iteration of "${run}"`);
    }
    if (!this.#seen.includes(runId)) this.#seen.push(runId);
    const newest = this.#seen.at(-1);
    if (newest !== runId) {
      this.#findings.add(`client ${clientId} of "${runId}" was let in after "${newest}"`);
    }
  }
}
