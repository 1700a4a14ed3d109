/** The schedules in a heartbeat answer: only the tasks that the consumer does not know yet. */
import type { Client, Iteration } from "../../state/entities.ts";
import type { RoundsNews, RoundsReport } from "../../protocol_heartbeats.ts";
import type { RoundSchedule, ScheduleNews } from "../../protocol_schedules.ts";
import type { DispatcherState } from "../../state/state.ts";

type KnownSchedules = Pick<RoundsReport, "scheduleInForce" | "knownSchedule">;

/** The schedules in force and the proposal for a client. */
export function scheduleNews(
  state: DispatcherState,
  { firstVersion }: Client,
  { iterationId, rounds: { schedules, proposal } }: Iteration,
  { scheduleInForce = -1, knownSchedule = -1 }: KnownSchedules = {},
): Pick<RoundsNews, "schedules" | "proposed"> {
  const index = state.roundIndexOf(iterationId);
  const areOldKnown = index !== undefined && index.replacedAt <= scheduleInForce;
  /** The schedule without the tasks that the consumer knows, or with their changes. */
  const asProposed = (schedule: RoundSchedule): ScheduleNews => {
    const { taskIds: _, ...news } = schedule;
    const { version } = schedule;
    if (version === knownSchedule) return news;
    const change = index?.changesSince(knownSchedule, version);
    if (change === undefined) return schedule;
    return { ...news, added: [...change.added], removed: [...change.removed] };
  };
  const inForce = (schedule: RoundSchedule): ScheduleNews => {
    const { taskIds: _, ...news } = schedule;
    if (schedule.version <= scheduleInForce && areOldKnown) return news;
    return schedule === schedules.at(-1) ? asProposed(schedule) : schedule;
  };
  return {
    schedules: firstVersion === null
      ? []
      : schedules.filter(({ version }) => version >= firstVersion).map(inForce),
    ...(proposal === null ? {} : { proposed: asProposed(proposal.schedule) }),
  };
}
