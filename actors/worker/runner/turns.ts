/** Identities take turns at what they share, so that one with many requests does not delay the others. */

/** Limits of the work that runs at a time. */
export interface SlotLimits {
  readonly max: number;
  /** Of one identity. */
  readonly perOwnerMax: number;
}

/** Runs work of identities in turns, some of it at a time. */
export class Slots {
  readonly #max: number;
  readonly #turns: Turns<Set<() => Promise<void>>>;
  #running = 0;

  constructor({ max, perOwnerMax }: SlotLimits) {
    this.#max = max;
    this.#turns = new Turns(() => new Set(), perOwnerMax);
  }

  /** Runs `work` when it is the identity's turn; settles as it does. */
  run<T>(owner: string, work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#turns.queueOf(owner).add(() => Promise.try(work).then(resolve, reject));
      this.#begin();
    });
  }

  #begin(): void {
    while (this.#running < this.#max) {
      const turn = this.#turns.begin();
      if (turn === undefined) return;
      const run = turn.queue.values().next().value!;
      turn.queue.delete(run);
      this.#running++;
      run().then(() => {
        this.#running--;
        this.#turns.end(turn.owner);
        this.#begin();
      });
    }
  }
}

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
