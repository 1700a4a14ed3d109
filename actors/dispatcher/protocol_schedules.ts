/** The schedules of coordinated reads in heartbeat answers. */

/**
 * Which tasks serve the rounds from `fromRound` on: round r is served by `taskIds[r % length]`
 * (coordinated reads). A schedule with no tasks means that rounds wait.
 */
export interface RoundSchedule {
  readonly version: number;
  readonly fromRound: number;
  readonly taskIds: readonly number[];
  /**
   * Once in force: the earlier rounds of tasks outside this schedule that all consumers hold, and
   * keep. Consumers drop their other rounds of those tasks, because another task serves them.
   */
  readonly kept?: readonly number[];
}

/**
 * A schedule in a heartbeat answer. `taskIds` is missing if the consumer already has this version.
 * It is also missing if `added` and `removed` give the changes to the newest schedule that the
 * request reports as known.
 */
export interface ScheduleNews extends Omit<RoundSchedule, "taskIds"> {
  readonly taskIds?: readonly number[];
  /** New tasks, in the order in which they are appended. */
  readonly added?: readonly number[];
  readonly removed?: readonly number[];
}

/** How the tasks of a schedule differ from those of an older one; new tasks are appended. */
export interface ScheduleChange {
  readonly added: Iterable<number>;
  readonly removed: Iterable<number>;
}

/** Applies a change to the tasks of a schedule. */
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
