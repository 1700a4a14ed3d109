/** Keeps the started programs that have not ended, so that they can be stopped at the end. */

/** A program whose end can be awaited. */
interface Child {
  readonly ended: Promise<unknown>;
}

/** The running programs. It forgets ended ones, so that many kills and restarts take no memory. */
export class Children<C extends Child> {
  readonly #started = new Set<Promise<C>>();

  /** The number of starting and running programs. */
  get size(): number {
    return this.#started.size;
  }

  /** Adds a starting program. It is forgotten when it has ended or failed to start. */
  add(child: Promise<C>): void {
    this.#started.add(child);
    const forget = () => this.#started.delete(child);
    child.then(({ ended }) => ended).then(forget, forget);
  }

  /** The running programs. Waits until none is starting. */
  async running(): Promise<C[]> {
    return (await Promise.allSettled(this.#started))
      .flatMap((outcome) => outcome.status === "fulfilled" ? [outcome.value] : []);
  }
}
