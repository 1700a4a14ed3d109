/**
 * Names for the lists of tasks that clients are told, so that who has a list is told how it has changed,
 * and nothing where it has not: that would be all workers to all clients at each heartbeat, and once more
 * with each worker that comes.
 *
 * Not journaled: names of one life mean nothing to the next, which tells all once more.
 *
 * @module
 */

/** Changes that are remembered of a list, at least; else as many as it has tasks, which can be told as well. */
const CHANGES_MIN = 64;

/** The newest changes of one list. */
interface Changes {
  /** The version of the list before them. */
  firstVersion: number;
  /** What changed, each to one version more. */
  readonly taskIds: number[];
}

/** See the module. */
export class TaskLists {
  readonly #life: string;
  readonly #changes = new Map<number, Changes>();

  /** @param life Differs between lives of the dispatcher. */
  constructor(life: string) {
    this.#life = life;
  }

  /** What the tasks of an iteration are named by as they are now. */
  nameOf(iterationId: number): string {
    const { firstVersion, taskIds } = this.#of(iterationId);
    return `${this.#begins(iterationId)}${firstVersion + taskIds.length}`;
  }

  /** The tasks that have changed since a list had that name; undefined where that is not known. */
  changedSince(iterationId: number, name: string | undefined): ReadonlySet<number> | undefined {
    const begins = this.#begins(iterationId);
    if (name === undefined || !name.startsWith(begins)) return undefined;
    const { firstVersion, taskIds } = this.#of(iterationId);
    const missed = firstVersion + taskIds.length - Number(name.slice(begins.length));
    if (!(missed >= 0 && missed <= taskIds.length)) return undefined;
    return new Set(missed === 0 ? [] : taskIds.slice(-missed));
  }

  /**
   * A task of the iteration can be read, or cannot any more.
   *
   * @param tasks How many tasks the iteration has.
   */
  changed(iterationId: number, taskId: number, tasks: number): void {
    const changes = this.#of(iterationId);
    const { taskIds } = changes;
    this.#changes.set(iterationId, changes);
    taskIds.push(taskId);
    const kept = Math.max(CHANGES_MIN, tasks);
    // Not at each change: what is dropped is moved past.
    if (taskIds.length > 2 * kept) {
      changes.firstVersion += taskIds.splice(0, taskIds.length - kept).length;
    }
  }

  /** The iteration is over. */
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
