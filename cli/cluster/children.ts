/** The started programs that have not ended: exactly what must be stopped at the end. */

/** A program whose end can be awaited. */
interface Child {
  readonly ended: Promise<unknown>;
}

/**
 * The running programs. An ended one is forgotten, so that many kills and restarts cost nothing.
 */
export class Children<C extends Child> {
  readonly #started = new Set<Promise<C>>();

  /** The number of starting and running programs. */
  get size(): number {
    return this.#started.size;
  }

  /** Keeps a starting program until it has ended or failed to start. */
  add(child: Promise<C>): void {
    this.#started.add(child);
    const forget = () => this.#started.delete(child);
    child.then(({ ended }) => ended).then(forget, forget);
  }

  /** The running ones, once none is starting. */
  async running(): Promise<C[]> {
    return (await Promise.allSettled(this.#started))
      .flatMap((outcome) => outcome.status === "fulfilled" ? [outcome.value] : []);
  }
}
