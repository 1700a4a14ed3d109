/** Identities take turns at what they share, so that one with many requests does not delay the others. */

interface Owned<Queue> {
  readonly queue: Queue;
  running: number;
}

export class Turns<Queue extends { readonly size: number }> {
  readonly #newQueue: () => Queue;
  readonly #runningMax: number;
  /** By identity, in the order in which their last turns began. */
  readonly #owners = new Map<string, Owned<Queue>>();

  /** @param runningMax Limit of one identity's turns at a time. Default: none. */
  constructor(newQueue: () => Queue, runningMax = Infinity) {
    this.#newQueue = newQueue;
    this.#runningMax = runningMax;
  }

  /** The queue of an identity: what has not had a turn. */
  queueOf(owner: string): Queue {
    const owned = () => ({ queue: this.#newQueue(), running: 0 });
    return this.#owners.getOrInsertComputed(owner, owned).queue;
  }

  /**
   * Begins a turn of the waiting identity that has the fewest running ones; of several, of the one
   * whose last turn began first. The caller takes something from the queue.
   */
  begin(): { readonly owner: string; readonly queue: Queue } | undefined {
    let [next, fewest] = [undefined as string | undefined, this.#runningMax];
    for (const [owner, { queue, running }] of this.#owners) {
      if (queue.size > 0 && running < fewest) [next, fewest] = [owner, running];
    }
    if (next === undefined) return undefined;
    const owned = this.#owners.get(next)!;
    this.#owners.delete(next);
    this.#owners.set(next, owned);
    owned.running++;
    return { owner: next, queue: owned.queue };
  }

  end(owner: string): void {
    this.#owners.get(owner)!.running--;
    this.forgetIdle(owner);
  }

  /** Forgets an identity that has no turn and waits for none. */
  forgetIdle(owner: string): void {
    const owned = this.#owners.get(owner);
    if (owned?.queue.size === 0 && owned.running === 0) this.#owners.delete(owner);
  }
}
