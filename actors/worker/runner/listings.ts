/**
 * Lists the splits of datasets, a few at a time. Equal requests of an identity share a listing. A
 * listing ends at the deadline of its last request, so that repeated requests do not pile up on a busy
 * worker. Listing a pipeline with many sources may take minutes, so each identity has a limit.
 */
import { AbortRace } from "../../../core/abort_race.ts";
import { LeatError } from "../../../core/error.ts";
import type { SplitBounds } from "../../../data/sharding/split_table.ts";
import type { DatasetDefinition } from "../../dispatcher/protocol.ts";
import type { World } from "../../runtime/world.ts";
import type { RunnerFactory } from "./runner.ts";

/** Concurrent listings, not counting abandoned ones that could not be stopped. */
const LISTINGS_MAX = 3;
/** Concurrent listings of one identity. */
const LISTINGS_PER_OWNER_MAX = 2;

interface Asker {
  readonly deadlineMs: number;
  readonly bounds: PromiseWithResolvers<SplitBounds>;
}

interface Listing {
  readonly dataset: DatasetDefinition;
  readonly askers: Asker[];
}

/** The listings of one identity. */
interface Owned {
  /** Listings not begun, by dataset id and fingerprint, oldest first. */
  readonly queue: Map<string, Listing>;
  running: number;
}

export class Listings {
  readonly #world: World;
  readonly #runners: Pick<RunnerFactory, "listSplits">;
  /** By identity, in the order in which their last listings began. */
  readonly #owners = new Map<string, Owned>();
  #running = 0;

  constructor(world: World, runners: Pick<RunnerFactory, "listSplits">) {
    this.#world = world;
    this.#runners = runners;
  }

  /**
   * Lists the splits, never from a listing that began before this call. `deadlineMs` is monotonic;
   * `owner` is the identity whose job needs the splits.
   * @throws {LeatError} The listing's failure; `deadline_exceeded`.
   */
  list(dataset: DatasetDefinition, owner: string, deadlineMs: number): Promise<SplitBounds> {
    // A dispatcher that lost its journal assigns the same ids again.
    const key = `${dataset.datasetId} ${dataset.fingerprint}`;
    const { queue } = this.#owners.getOrInsertComputed(
      owner,
      () => ({ queue: new Map(), running: 0 }),
    );
    const listing = queue.getOrInsert(key, { dataset, askers: [] });
    const bounds = Promise.withResolvers<SplitBounds>();
    listing.askers.push({ deadlineMs, bounds });
    this.#begin();
    return bounds.promise;
  }

  #begin(): void {
    while (this.#running < LISTINGS_MAX) {
      const owner = this.#nextOwner();
      if (owner === undefined) return;
      const owned = this.#owners.get(owner)!;
      this.#owners.delete(owner);
      this.#owners.set(owner, owned);
      const [key, listing] = owned.queue.entries().next().value!;
      owned.queue.delete(key);
      this.#run(owner, owned, listing);
    }
  }

  /** The waiting identity with the fewest running listings; of several, the first in `#owners`. */
  #nextOwner(): string | undefined {
    let [next, fewest] = [undefined as string | undefined, LISTINGS_PER_OWNER_MAX];
    for (const [owner, { queue, running }] of this.#owners) {
      if (queue.size > 0 && running < fewest) [next, fewest] = [owner, running];
    }
    return next;
  }

  async #run(owner: string, owned: Owned, { dataset, askers }: Listing): Promise<void> {
    const lastMs = Math.max(...askers.map(({ deadlineMs }) => deadlineMs));
    const leftMs = lastMs - this.#world.nowMs();
    const timeoutError = () =>
      new LeatError("deadline_exceeded", "The splits were not listed in time");
    if (leftMs <= 0) {
      for (const { bounds } of askers) bounds.reject(timeoutError());
      this.#forgetIdle(owner, owned);
      return;
    }
    owned.running++;
    this.#running++;
    const aborter = new AbortController();
    // The runner may not react to the signal, for example if its disk does not answer.
    const abort = new AbortRace();
    const giveUp = () => {
      const error = timeoutError();
      abort.abort(error);
      aborter.abort(error);
    };
    const timer = Number.isFinite(leftMs) ? this.#world.timer(leftMs, giveUp) : undefined;
    try {
      const bounds = await abort.race(
        this.#runners.listSplits(dataset.graph, aborter.signal, { owner }),
      );
      for (const asker of askers) asker.bounds.resolve(bounds);
    } catch (error) {
      for (const asker of askers) asker.bounds.reject(error);
    } finally {
      timer?.cancel();
      this.#running--;
      owned.running--;
      this.#forgetIdle(owner, owned);
      this.#begin();
    }
  }

  #forgetIdle(owner: string, { queue, running }: Owned): void {
    if (queue.size === 0 && running === 0) this.#owners.delete(owner);
  }
}
