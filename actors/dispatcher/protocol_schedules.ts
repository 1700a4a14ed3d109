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
   * In force: earlier rounds that all consumers hold of tasks this schedule leaves out, and keep.
   * Consumers drop other such rounds, as another task serves those.
   */
  readonly kept?: readonly number[];
}

/**
 * A schedule in a heartbeat answer. `taskIds` is missing if the consumer has the tasks: those of
 * the same version, in force or known. Or the tasks are given as changes to the newest schedule
 * that the request reports as known.
 */
export interface ScheduleNews extends Omit<RoundSchedule, "taskIds"> {
  readonly taskIds?: readonly number[];
  /** New tasks, in the order in which they are appended. */
  readonly added?: readonly number[];
  readonly removed?: readonly number[];
}

/** The difference of a schedule's tasks from an older one's; new tasks are appended. */
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
