/**
 * Checks that readers of different runs of a training program never read the same iteration, and that no
 * reader of an earlier run joins after a reader of a later run. A reader that takes over, because it was
 * restored or is the first of its run, must have named the newest reader that it replaces. A late request
 * of a dead process cannot name it.
 */
import type { JournalRecord, RecordOf } from "../../actors/dispatcher/journal/records.ts";
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import type { RequestOf } from "../../actors/runtime/protocol.ts";
import type { Findings } from "./checker.ts";
import type { RecordWatcher } from "./journal.ts";

type ClientOpened = RecordOf<"client_opened">;
type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;

/** Watches one job. Either all readers name their runs, or none does. */
export class RunsChecker implements RecordWatcher {
  readonly #findings: Findings;
  /** The readers, in the order in which they joined. */
  #opened: ClientOpened[] = [];
  /** The reader that each request names as replaced. */
  readonly #follows = new Map<string, number>();

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** An observer for `ActorSystem.inspect` of the dispatcher's node. */
  readonly observe = (event: InspectionEvent): void => {
    if (event.type !== "deliver" || event.envelope.kind !== "ask") return;
    if (event.envelope.method !== "openIteration") return;
    const { requestId, follows } = event.envelope.body as OpenRequest;
    if (follows !== undefined) this.#follows.set(requestId, follows);
  };

  journaled(record: JournalRecord): void {
    if (record.type !== "client_opened") return;
    this.#takesOver(record);
    this.#opened.push(record);
    if (record.runId !== undefined) this.#joins(record);
  }

  /** Checks that a reader that takes over has named the newest of those before it. */
  #takesOver({ clientId, requestId, consumerIndex, restoration, runId }: ClientOpened): void {
    const isFirst = runId !== undefined && !this.#opened.some((each) => each.runId === runId);
    const replaced = this.#opened.findLast((each) =>
      isFirst || restoration !== undefined && each.consumerIndex === consumerIndex
    );
    const follows = this.#follows.get(requestId);
    if (replaced === undefined || (follows ?? 0) >= replaced.clientId) return;
    this.#findings.add(
      `client ${clientId} took over from client ${replaced.clientId}, and named ${
        follows ?? "none"
      }`,
    );
  }

  #joins({ runId, clientId, iterationId }: ClientOpened): void {
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
