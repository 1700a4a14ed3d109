/**
 * Schedules of coordinated reads, as consumers are told of them.
 *
 * @module
 */

/**
 * Which tasks serve the rounds from `fromRound` on: round r is served by `taskIds[r % length]`
 * (coordinated reads). A schedule with no tasks means that rounds wait.
 */
export interface RoundSchedule {
  readonly version: number;
  readonly fromRound: number;
  readonly taskIds: readonly number[];
  /**
   * In force: rounds before it of tasks that it leaves out which all consumers hold, and keep. What some
   * hold of other such rounds they drop, as another task serves those.
   */
  readonly kept?: readonly number[];
}

/**
 * A schedule, as a consumer is told of it. Its tasks are left out where the consumer has them: those of the
 * same version, in force or known. Or they are told as a change of those of the newest schedule that the
 * request says is known.
 */
export interface ScheduleNews extends Omit<RoundSchedule, "taskIds"> {
  readonly taskIds?: readonly number[];
  /** In the order in which they come behind the others. */
  readonly added?: readonly number[];
  readonly removed?: readonly number[];
}

/** How the tasks of a schedule differ from those of an older one: new ones come last. */
export interface ScheduleChange {
  readonly added: Iterable<number>;
  readonly removed: Iterable<number>;
}

/** The tasks of a schedule that differs so from one with these. */
export function changedTasks(
  taskIds: readonly number[],
  change: ScheduleChange,
): readonly number[] {
  const added = [...change.added];
  const removed = new Set(change.removed);
  if (added.length + removed.size === 0) return taskIds;
  const kept = removed.size === 0 ? taskIds : taskIds.filter((taskId) => !removed.has(taskId));
  return kept.concat(added);
}
