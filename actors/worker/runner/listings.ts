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
import { listerError } from "../protocol.ts";
import type { RunnerFactory } from "./runner.ts";
import { type SlotLimits, Slots } from "./turns.ts";

/** Concurrent listings, not counting abandoned ones that could not be stopped. */
const LISTINGS_MAX = 3;
/** Concurrent listings of one identity. */
const LISTINGS_PER_OWNER_MAX = 2;
/** Limits of work that lists splits. */
export const LISTING_LIMITS: SlotLimits = {
  max: LISTINGS_MAX,
  perOwnerMax: LISTINGS_PER_OWNER_MAX,
};

interface Asker {
  readonly deadlineMs: number;
  readonly bounds: PromiseWithResolvers<SplitBounds>;
}

interface Listing {
  readonly dataset: DatasetDefinition;
  readonly askers: Asker[];
}

export class Listings {
  readonly #world: World;
  readonly #runners: Pick<RunnerFactory, "listSplits">;
  readonly #slots = new Slots(LISTING_LIMITS);
  /** Listings that have not begun, by identity, dataset id and fingerprint. */
  readonly #waiting = new Map<string, Listing>();

  constructor(world: World, runners: Pick<RunnerFactory, "listSplits">) {
    this.#world = world;
    this.#runners = runners;
  }

  /**
   * Lists the splits, never from a listing that began before this call. `deadlineMs` is monotonic;
   * `owner` is the identity whose job needs the splits.
   * @throws {LeatError} The listing's failure, see {@linkcode listerError}; `deadline_exceeded`.
   */
  list(dataset: DatasetDefinition, owner: string, deadlineMs: number): Promise<SplitBounds> {
    // A dispatcher that lost its journal assigns the same ids again.
    const key = JSON.stringify([owner, dataset.datasetId, dataset.fingerprint]);
    const asker = { deadlineMs, bounds: Promise.withResolvers<SplitBounds>() };
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined) waiting.askers.push(asker);
    else {
      const listing = { dataset, askers: [asker] };
      this.#waiting.set(key, listing);
      this.#slots.run(owner, () => {
        this.#waiting.delete(key);
        return this.#run(owner, listing);
      });
    }
    return asker.bounds.promise;
  }

  async #run(owner: string, { dataset, askers }: Listing): Promise<void> {
    const lastMs = Math.max(...askers.map(({ deadlineMs }) => deadlineMs));
    const leftMs = lastMs - this.#world.nowMs();
    const timeoutError = () =>
      new LeatError("deadline_exceeded", "The splits were not listed in time");
    if (leftMs <= 0) {
      for (const { bounds } of askers) bounds.reject(timeoutError());
      return;
    }
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
      const failure = listerError(error);
      for (const asker of askers) asker.bounds.reject(failure);
    } finally {
      timer?.cancel();
    }
  }
}
