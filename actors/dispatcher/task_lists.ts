/**
 * Names for the lists of tasks that clients are told, so that a list which a client has already is not
 * told again: that would be all workers to all clients at each heartbeat.
 *
 * Not journaled: names of one life mean nothing to the next, which tells all once more.
 *
 * @module
 */

/** See the module. */
export class TaskLists {
  readonly #life: string;
  readonly #versions = new Map<number, number>();

  /** @param life Differs between lives of the dispatcher. */
  constructor(life: string) {
    this.#life = life;
  }

  /** What the tasks of an iteration are named by as they are now. */
  nameOf(iterationId: number): string {
    return `${this.#life} ${iterationId} ${this.#versions.get(iterationId) ?? 0}`;
  }

  /** A task of the iteration can be read, or cannot any more. */
  changed(iterationId: number): void {
    this.#versions.set(iterationId, (this.#versions.get(iterationId) ?? 0) + 1);
  }

  /** The iteration is over. */
  forget(iterationId: number): void {
    this.#versions.delete(iterationId);
  }
}
