/** Counts splits, assigned as by a dispatcher with a single worker. */
import { type Dataset, DenoHost, LeatError } from "../../mod.ts";
import { END } from "../../data/iterator.ts";
import {
  checkSplittable,
  listSplitTable,
  type Split,
  type SplitSource,
  type SplitTable,
} from "../../data/sharding/splits.ts";

/** The splits of a dataset, counted. */
export class CountedSplits {
  /** How many were assigned so far. */
  handed = 0;
  readonly #table: SplitTable;

  private constructor(table: SplitTable) {
    this.#table = table;
  }

  /** The splits of a dataset; `undefined` if it cannot be divided among workers. */
  static async of(dataset: Dataset<unknown>): Promise<CountedSplits | undefined> {
    try {
      checkSplittable(dataset.node);
    } catch (error) {
      if (error instanceof LeatError) return undefined;
      throw error;
    }
    return new CountedSplits(await listSplitTable(dataset.node, new DenoHost()));
  }

  /** All splits, for one run of the dataset. */
  source(): SplitSource {
    const places = new Map<string, number>();
    return {
      next: (source, repetition) => {
        const key = `${source} ${repetition}`;
        const place = places.get(key) ?? 0;
        places.set(key, place + 1);
        const split: Split | undefined = this.#table[source]?.[place];
        if (split === undefined) return Promise.resolve(END);
        this.handed++;
        return Promise.resolve(split);
      },
      total: (source) => Promise.resolve(this.#table[source]?.length ?? 0),
    };
  }
}
