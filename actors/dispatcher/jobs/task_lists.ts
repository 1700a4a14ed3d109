/**
 * Gives each version of a task list a name. A client that sends the name of the version it has gets
 * only the changes. Not journaled: a restarted dispatcher knows no names, and sends full lists.
 */

/** How many changes of a list are remembered; for a list with more tasks, as many as its tasks. */
const CHANGES_MIN = 64;

interface Changes {
  /** The list's version before the first change in `taskIds`. */
  firstVersion: number;
  /** The changed tasks; each raises the version by one. */
  readonly taskIds: number[];
}

/** The recent changes of each iteration's task list. */
export class TaskLists {
  readonly #incarnation: string;
  readonly #changes = new Map<number, Changes>();

  /** @param incarnation The name of this start of the dispatcher; each start has another name. */
  constructor(incarnation: string) {
    this.#incarnation = incarnation;
  }

  /** The name of the iteration's current task list. */
  nameOf(iterationId: number): string {
    const { firstVersion, taskIds } = this.#of(iterationId);
    return `${this.#prefix(iterationId)}${firstVersion + taskIds.length}`;
  }

  /** The tasks that changed since the list had that name; undefined if unknown. */
  changedSince(iterationId: number, name: string | undefined): ReadonlySet<number> | undefined {
    const prefix = this.#prefix(iterationId);
    if (name === undefined || !name.startsWith(prefix)) return undefined;
    const { firstVersion, taskIds } = this.#of(iterationId);
    const missed = firstVersion + taskIds.length - Number(name.slice(prefix.length));
    if (!(missed >= 0 && missed <= taskIds.length)) return undefined;
    return new Set(missed === 0 ? [] : taskIds.slice(-missed));
  }

  /** A task has become readable, or no longer is. @param taskCount The number of the iteration's tasks. */
  changed(iterationId: number, taskId: number, taskCount: number): void {
    const changes = this.#of(iterationId);
    const { taskIds } = changes;
    this.#changes.set(iterationId, changes);
    taskIds.push(taskId);
    const kept = Math.max(CHANGES_MIN, taskCount);
    // Drops changes in batches, as dropping moves the rest of the array.
    if (taskIds.length > 2 * kept) {
      changes.firstVersion += taskIds.splice(0, taskIds.length - kept).length;
    }
  }

  /** The iteration is removed. */
  forget(iterationId: number): void {
    this.#changes.delete(iterationId);
  }

  #of(iterationId: number): Changes {
    return this.#changes.get(iterationId) ?? { firstVersion: 0, taskIds: [] };
  }

  #prefix(iterationId: number): string {
    return `${this.#incarnation} ${iterationId} `;
  }
}
