/**
 * Taking up a journal where it was left.
 *
 * @module
 */
import type { DurableLog } from "../runtime/durable_log.ts";
import { type Journal, LoggedJournal, type LoggedJournalOptions } from "./journal.ts";
import { decodeRecord } from "./records.ts";
import { decodeSnapshot, DispatcherState, encodeSnapshot } from "./state.ts";

/** A journal and the state that follows from it. */
export interface Recovered {
  readonly state: DispatcherState;
  readonly journal: Journal;
}

/**
 * Replays a log. It is closed again when that fails.
 *
 * @throws {LeatError} `data_loss` when it does not hold a whole journal, `unimplemented` when a later
 * version wrote it.
 */
export async function openJournal(
  log: DurableLog,
  options: Omit<LoggedJournalOptions, "log" | "snapshot">,
): Promise<Recovered> {
  try {
    const { snapshot, records } = await log.read();
    const state = snapshot === undefined
      ? new DispatcherState()
      : DispatcherState.restore(decodeSnapshot(snapshot));
    let bytes = 0;
    for (const record of records) {
      state.apply(decodeRecord(record));
      bytes += record.byteLength;
    }
    const journal = new LoggedJournal(
      { ...options, log, snapshot: () => encodeSnapshot(state.snapshot()) },
      { records: records.length, bytes, snapshotBytes: snapshot?.byteLength ?? 0 },
    );
    return { state, journal };
  } catch (error) {
    await log.close();
    throw error;
  }
}
