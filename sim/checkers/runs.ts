/**
 * Checks that readers of two starts of a training program never read one iteration, and that none of an
 * earlier start comes once a later one has.
 *
 * @module
 */
import type { JournalRecord } from "../../actors/dispatcher/records.ts";
import type { Findings } from "./checker.ts";

/** See the module. All readers name their runs, or none does. */
export class RunsChecker {
  readonly #findings: Findings;
  /** Of iterations, the run of the first reader. */
  readonly #runs = new Map<number, string>();
  /** Runs by their first appearance. */
  readonly #seen: string[] = [];

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** Looks at what is journaled. */
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
