/** Recovers the dispatcher's state from its journal. */
import type { DurableLog } from "../../runtime/durable_log.ts";
import { LoggedJournal, type LoggedJournalOptions } from "./journal.ts";
import { decodeRecords } from "./records.ts";
import { decodeSnapshot, encodeSnapshot } from "./snapshot.ts";
import { DispatcherState } from "../state/state.ts";

export interface Recovered {
  readonly state: DispatcherState;
  readonly journal: LoggedJournal;
}

/**
 * Replays a log. Closes the log if that fails.
 * @throws {LeatError} `data_loss` for an incomplete journal, `unimplemented` for a later version.
 */
export async function openJournal(
  log: DurableLog,
  options: Omit<LoggedJournalOptions, "log" | "snapshot"> & {
    readonly snapshotBytesMax: number;
  },
): Promise<Recovered> {
  try {
    const { snapshot, records } = await log.read();
    const state = snapshot === undefined
      ? new DispatcherState()
      : DispatcherState.restore(decodeSnapshot(snapshot));
    let count = 0;
    let bytes = 0;
    for (const journaled of records) {
      for (const record of decodeRecords(journaled)) {
        state.apply(record);
        count++;
      }
      bytes += journaled.byteLength;
    }
    const journal = new LoggedJournal(
      {
        ...options,
        log,
        snapshot: () => encodeSnapshot(state.snapshot(), options.snapshotBytesMax),
      },
      { records: count, bytes, snapshotBytes: snapshot?.byteLength ?? 0 },
    );
    return { state, journal };
  } catch (error) {
    await log.close();
    throw error;
  }
}
