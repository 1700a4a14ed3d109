/** The records of modes: the change that each makes, and its effect. */
import * as sequences from "./deterministic/ordered_state.ts";
import type { Change } from "../state/record_changes.ts";
import type { JournalRecord } from "../journal/records.ts";
import * as rounds from "./coordinated/rounds_state.ts";
import * as saves from "./save/saving_state.ts";
import { assignSplit } from "./split_requests.ts";

/** Whether clients get a hint, or tasks' waiting requests are tried again. */
type Effect = "hint clients" | "answer tasks" | "nothing";

const CHANGES = {
  split_assigned: assignSplit,

  sequence_assigned: sequences.assigned,
  sequences_received: sequences.received,

  save_begun: saves.begun,
  save_run_assigned: saves.runAssigned,
  save_run_written: saves.runWritten,
  save_entry_assigned: saves.entryAssigned,
  save_entry_written: saves.entryWritten,

  schedule_changed: rounds.changed,
  schedule_accepted: rounds.accepted,
  schedule_committed: rounds.committed,
  rounds_reached: rounds.reached,
  rounds_ended: rounds.ended,
} satisfies { readonly [T in JournalRecord["type"]]?: Change<T> };

export const MODE_CHANGES: typeof CHANGES = CHANGES;

const EFFECTS: Readonly<Record<keyof typeof CHANGES, Effect>> = {
  split_assigned: "nothing",

  sequence_assigned: "nothing",
  sequences_received: "answer tasks",

  save_begun: "nothing",
  save_run_assigned: "nothing",
  save_run_written: "answer tasks",
  save_entry_assigned: "nothing",
  save_entry_written: "answer tasks",

  schedule_changed: "hint clients",
  schedule_accepted: "nothing",
  schedule_committed: "hint clients",
  rounds_reached: "nothing",
  rounds_ended: "hint clients",
};

/** The effect of a mode's record; undefined for other records. */
export function effectOf({ type }: JournalRecord): Effect | undefined {
  return EFFECTS[type as keyof typeof EFFECTS];
}
