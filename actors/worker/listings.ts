/**
 * Listing the splits of datasets, a few at a time: what is asked for several times is listed once, and
 * what nobody waits for any more is not.
 *
 * A listing takes a thread where functions are confined. If those that are asked for again because they
 * were late all took one, a busy worker would be ever later.
 *
 * @module
 */
import { Ending } from "../../core/ending.ts";
import { LeatError } from "../../core/error.ts";
import type { SplitTable } from "../../data/splits.ts";
import type { DatasetDefinition } from "../dispatcher/protocol.ts";
import type { World } from "../runtime/world.ts";
import type { RunnerFactory } from "./runner.ts";

/** Listings that run at a time, beside those that were given up and go on nevertheless. */
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
  /** Those that have not begun, by dataset and what it is, the oldest first. */
  readonly #queue = new Map<string, Listing>();
  #running = 0;

  constructor(world: World, runners: Pick<RunnerFactory, "listSplits">) {
    this.#world = world;
    this.#runners = runners;
  }

  /**
   * The splits as they are at some time after this was called.
   *
   * @param deadlineMs When nobody waits for them any more, in monotonic time.
   * @throws {LeatError} What the listing failed with; `deadline_exceeded` when it has come to nothing by then.
   */
  list(dataset: DatasetDefinition, deadlineMs: number): Promise<SplitTable> {
    // A dispatcher that has lost its journal gives ids anew.
    const key = `${dataset.datasetId} ${dataset.fingerprint}`;
    const listing = this.#queue.get(key) ?? { dataset, askers: [] };
    this.#queue.set(key, listing);
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
    const late = () => new LeatError("deadline_exceeded", "Nobody waits for these splits any more");
    if (leftMs <= 0) {
      for (const { table } of askers) table.reject(late());
      return;
    }
    this.#running++;
    const givenUp = new AbortController();
    // Not every runner can be stopped: a folder may be on a disk that does not answer.
    const ending = new Ending();
    const giveUp = () => {
      const error = late();
      ending.come(error);
      givenUp.abort(error);
    };
    const timer = Number.isFinite(leftMs) ? this.#world.timer(leftMs, giveUp) : undefined;
    try {
      const table = await ending.before(this.#runners.listSplits(dataset.graph, givenUp.signal));
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
