/**
 * Names versions of the task lists that clients receive. A client that names its version gets only
 * the changes. Not journaled: a restarted dispatcher does not know the names and sends full lists.
 */

/** Changes remembered for each list, or as many as the list has tasks if that is more. */
const CHANGES_MIN = 64;

interface Changes {
  /** The list's version before the first of `taskIds` changed. */
  firstVersion: number;
  /** The changed tasks; each raises the version by one. */
  readonly taskIds: number[];
}

/** The recent changes of each iteration's task list. */
export class TaskLists {
  readonly #life: string;
  readonly #changes = new Map<number, Changes>();

  /** @param life The name of this run of the dispatcher; each run has another name. */
  constructor(life: string) {
    this.#life = life;
  }

  /** The name of the iteration's current task list. */
  nameOf(iterationId: number): string {
    const { firstVersion, taskIds } = this.#of(iterationId);
    return `${this.#begins(iterationId)}${firstVersion + taskIds.length}`;
  }

  /** The tasks that changed since the list had that name; undefined if unknown. */
  changedSince(iterationId: number, name: string | undefined): ReadonlySet<number> | undefined {
    const begins = this.#begins(iterationId);
    if (name === undefined || !name.startsWith(begins)) return undefined;
    const { firstVersion, taskIds } = this.#of(iterationId);
    const missed = firstVersion + taskIds.length - Number(name.slice(begins.length));
    if (!(missed >= 0 && missed <= taskIds.length)) return undefined;
    return new Set(missed === 0 ? [] : taskIds.slice(-missed));
  }

  /** A task has become readable, or no longer is. @param tasks How many the iteration has. */
  changed(iterationId: number, taskId: number, tasks: number): void {
    const changes = this.#of(iterationId);
    const { taskIds } = changes;
    this.#changes.set(iterationId, changes);
    taskIds.push(taskId);
    const kept = Math.max(CHANGES_MIN, tasks);
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

  #begins(iterationId: number): string {
    return `${this.#life} ${iterationId} `;
  }
}
