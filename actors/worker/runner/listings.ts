/**
 * Lists the splits of datasets, a few at a time. Equal requests share a listing. A listing that
 * nobody waits for is stopped, or repeated ones would slow down a busy worker: each confined one
 * takes a thread.
 */
import { AbortRace } from "../../../core/abort_race.ts";
import { LeatError } from "../../../core/error.ts";
import type { SplitTable } from "../../../data/sharding/splits.ts";
import type { DatasetDefinition } from "../../dispatcher/protocol.ts";
import type { World } from "../../runtime/world.ts";
import type { RunnerFactory } from "./runner.ts";

/** Concurrent listings, not counting abandoned ones that could not be stopped. */
const LISTINGS_MAX = 2;

interface Asker {
  readonly deadlineMs: number;
  readonly table: PromiseWithResolvers<SplitTable>;
}

interface Listing {
  readonly dataset: DatasetDefinition;
  readonly askers: Asker[];
}

export class Listings {
  readonly #world: World;
  readonly #runners: Pick<RunnerFactory, "listSplits">;
  /** Those not begun, by dataset and definition, oldest first. */
  readonly #queue = new Map<string, Listing>();
  #running = 0;

  constructor(world: World, runners: Pick<RunnerFactory, "listSplits">) {
    this.#world = world;
    this.#runners = runners;
  }

  /**
   * The splits as they are after this call; `deadlineMs` is monotonic.
   * @throws {LeatError} The listing's failure; `deadline_exceeded`.
   */
  list(dataset: DatasetDefinition, deadlineMs: number): Promise<SplitTable> {
    // A dispatcher that lost its journal assigns the same ids again.
    const key = `${dataset.datasetId} ${dataset.fingerprint}`;
    const listing = this.#queue.getOrInsert(key, { dataset, askers: [] });
    const table = Promise.withResolvers<SplitTable>();
    listing.askers.push({ deadlineMs, table });
    this.#begin();
    return table.promise;
  }

  #begin(): void {
    for (const [key, listing] of this.#queue) {
      if (this.#running >= LISTINGS_MAX) return;
      this.#queue.delete(key);
      this.#run(listing);
    }
  }

  async #run({ dataset, askers }: Listing): Promise<void> {
    const lastMs = Math.max(...askers.map(({ deadlineMs }) => deadlineMs));
    const leftMs = lastMs - this.#world.nowMs();
    const late = () => new LeatError("deadline_exceeded", "The splits were not listed in time");
    if (leftMs <= 0) {
      for (const { table } of askers) table.reject(late());
      return;
    }
    this.#running++;
    const givenUp = new AbortController();
    // Not every runner can be stopped: its folder may be on a disk that does not answer.
    const abort = new AbortRace();
    const giveUp = () => {
      const error = late();
      abort.come(error);
      givenUp.abort(error);
    };
    const timer = Number.isFinite(leftMs) ? this.#world.timer(leftMs, giveUp) : undefined;
    try {
      const table = await abort.before(this.#runners.listSplits(dataset.graph, givenUp.signal));
      for (const asker of askers) asker.table.resolve(table);
    } catch (error) {
      for (const asker of askers) asker.table.reject(error);
    } finally {
      timer?.cancel();
      this.#running--;
      this.#begin();
    }
  }
}
