/**
 * The programs that were started and have not ended: what has to be stopped in the end, and no more.
 *
 * @module
 */

/** What can be waited for to end. */
export interface Child {
  readonly ended: Promise<unknown>;
}

/** See the module. One that has ended is forgotten, so that many kills and restarts cost nothing. */
export class Children<C extends Child> {
  readonly #started = new Set<Promise<C>>();

  /** How many start or run. */
  get size(): number {
    return this.#started.size;
  }

  /** Keeps one that starts, until it has ended or could not be started. */
  add(child: Promise<C>): void {
    this.#started.add(child);
    const forget = () => this.#started.delete(child);
    child.then(({ ended }) => ended).then(forget, forget);
  }

  /** Those that run, once none starts any more. */
  async running(): Promise<C[]> {
    return (await Promise.allSettled(this.#started))
      .flatMap((outcome) => outcome.status === "fulfilled" ? [outcome.value] : []);
  }
}
