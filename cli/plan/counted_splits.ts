/** Counts how many splits a pipeline requests. They are assigned as if there were a single worker. */
import { type Dataset, DenoHost, LeatError } from "../../mod.ts";
import { END } from "../../data/iterator.ts";
import {
  checkSplittable,
  listSplitTable,
  type Split,
  type SplitSource,
  type SplitTable,
} from "../../data/sharding/splits.ts";

/** Assigns the splits of a dataset, and counts them. */
export class CountedSplits {
  /** How many splits were assigned so far. */
  assigned = 0;
  readonly #table: SplitTable;

  private constructor(table: SplitTable) {
    this.#table = table;
  }

  /** Lists the splits of a dataset. `undefined` if it cannot be divided among workers. */
  static async of(dataset: Dataset<unknown>): Promise<CountedSplits | undefined> {
    try {
      checkSplittable(dataset.node);
    } catch (error) {
      if (error instanceof LeatError) return undefined;
      throw error;
    }
    return new CountedSplits(await listSplitTable(dataset.node, new DenoHost()));
  }

  /** Returns a source of all splits, for one run of the dataset. */
  source(): SplitSource {
    const nextIndexes = new Map<string, number>();
    return {
      next: (source, repetition) => {
        const key = `${source} ${repetition}`;
        const index = nextIndexes.get(key) ?? 0;
        nextIndexes.set(key, index + 1);
        const split: Split | undefined = this.#table[source]?.[index];
        if (split === undefined) return Promise.resolve(END);
        this.assigned++;
        return Promise.resolve(split);
      },
      total: (source) => Promise.resolve(this.#table[source]?.length ?? 0),
    };
  }
}
