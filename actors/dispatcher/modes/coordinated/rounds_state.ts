/** How records change the schedules and the progress of coordinated reads. */
import { isServing } from "../../state/entities.ts";
import type { RoundSchedules } from "../mode_state.ts";
import { changedTasks, type RoundSchedule } from "../../protocol_schedules.ts";
import type { RecordOf } from "../../journal/records.ts";
import { need, type Tables } from "../../state/tables.ts";

type ScheduleRecord = RecordOf<
  | "schedule_changed"
  | "schedule_accepted"
  | "schedule_committed"
  | "rounds_reached"
  | "rounds_ended"
>;

export function reached(tables: Tables, record: RecordOf<"rounds_reached">): void {
  roundsOf(tables, record).reached = record.round;
}

export function ended(tables: Tables, record: RecordOf<"rounds_ended">): void {
  roundsOf(tables, record).ended = record.round;
}

export function changed(tables: Tables, record: RecordOf<"schedule_changed">): void {
  const { iterationId, version, fromRound, distance } = record;
  const rounds = roundsOf(tables, record);
  const taskIds = changedTasks(newestTasks(rounds), record);
  rounds.lastVersion = version;
  const schedule = { version, fromRound, taskIds };
  rounds.proposal = { schedule, distance, acceptedBy: [], held: [] };
  const { clients = [], rounds: index } = tables.membersOfIteration.get(iterationId) ?? {};
  index?.proposed(version, record, clients);
}

export function accepted(tables: Tables, record: RecordOf<"schedule_accepted">): void {
  const { iterationId, clientId, deliveredRound = 0, heldRounds = [] } = record;
  const { acceptedBy, held } = need(roundsOf(tables, record).proposal ?? undefined, record);
  acceptedBy.push(clientId);
  held.push({ before: deliveredRound, rounds: heldRounds });
  tables.roundIndexOf(iterationId)?.accepted(clientId);
}

export function committed(tables: Tables, record: RecordOf<"schedule_committed">): void {
  const { iterationId, version, kept = [] } = record;
  const rounds = roundsOf(tables, record);
  const { schedule } = need(rounds.proposal ?? undefined, record);
  const { clients = [], rounds: index } = tables.membersOfIteration.get(iterationId) ?? {};
  // Schedules that start at or after the new one serve no round any more.
  const older = rounds.schedules.filter((old) =>
    old.version >= record.oldestVersion && old.fromRound < schedule.fromRound
  );
  const mayHaveLostTasks = index?.mayHaveLostTasks ?? true;
  rounds.schedules = mayHaveLostTasks ? older.map((old) => replaced(tables, old, schedule)) : older;
  rounds.schedules.push(kept.length === 0 ? schedule : { ...schedule, kept });
  rounds.proposal = null;
  if (version >= (rounds.vanished?.version ?? Infinity)) {
    rounds.vanished = null;
    // No later schedule may begin among the rounds of consumers that have vanished either.
    rounds.reached = Math.max(rounds.reached, schedule.fromRound);
  }
  for (const client of clients) client.firstVersion ??= version;
  index?.committed(version);
}

/** An older schedule with its lost tasks replaced by tasks of the newest schedule. */
function replaced(
  { tasks }: Tables,
  old: RoundSchedule,
  { taskIds: newest }: RoundSchedule,
): RoundSchedule {
  const taskIds = old.taskIds.map((taskId, i) =>
    isServing(tasks.get(taskId)) ? taskId : newest[i % newest.length] ?? taskId
  );
  return { ...old, taskIds };
}

function newestTasks({ proposal, schedules }: RoundSchedules): readonly number[] {
  return (proposal?.schedule ?? schedules.at(-1))?.taskIds ?? [];
}

function roundsOf({ iterations }: Tables, record: ScheduleRecord): RoundSchedules {
  return need(iterations.get(record.iterationId), record).rounds;
}
