/** The splits of an epoch: their order, and how each is run here. */
import { LeatError } from "../../core/error.ts";
import type { DatasetIterator } from "../../data/dataset_iterator.ts";
import type { OrderedChain } from "../../data/deterministic/chain.ts";
import { splitOrder } from "../../data/deterministic/order.ts";
import { openSplit, type SplitRunOptions } from "../../data/deterministic/split_run.ts";
import { ListedHost } from "../../data/deterministic/listed_host.ts";
import type { Host } from "../../data/host.ts";
import { BatchMemory } from "../../data/elements/batch_rows.ts";
import type { Settings } from "../../data/iteration_options.ts";
import { ReadingFailure } from "../../data/iterators/reading_failure.ts";
import { type DatasetNode, inPreOrder } from "../../data/node.ts";
import { digestOfSplits, packSplits } from "../../data/sharding/split_table.ts";
import { listSplitTable, type Split } from "../../data/sharding/splits.ts";
import type { SplitStats } from "./split_stats.ts";
import { type ReadLower, UpperNode } from "./upper_part.ts";

export interface SplitsOptions {
  readonly root: DatasetNode;
  readonly chain: OrderedChain;
  readonly seed: bigint;
  readonly epoch: number;
  readonly host: Host;
  /** What `withOptions` says of the whole pipeline. */
  readonly settings: Settings;
  /** Takes the figures of the splits. */
  readonly stats: SplitStats;
}

export interface SplitEvents {
  /** Called with the last rows of the split, if they do not fill a batch. */
  readonly onRemainder: (rows: unknown) => void;
  /** Called when the source has been read to the end of the split. */
  readonly onRead: () => void;
}

export class EpochSplits {
  readonly #options: SplitsOptions;
  readonly #splits: readonly Split[];
  readonly #order: Uint32Array;
  readonly #batchMemory: BatchMemory;
  /** The digest of the table of splits. */
  readonly digest: string;

  private constructor(options: SplitsOptions, splits: readonly Split[], digest: string) {
    const { seed, epoch, chain: { shuffled } } = options;
    this.#options = { ...options, host: new ListedHost(options.host) };
    this.#batchMemory = new BatchMemory(options.host.sharesBatches);
    this.#splits = splits;
    this.#order = splitOrder(splits.length, { seed, epoch, shuffled });
    this.digest = digest;
  }

  /** @throws {ReadingFailure} if the source cannot be listed. */
  static async list(options: SplitsOptions): Promise<EpochSplits> {
    try {
      const table = await listSplitTable(options.root, options.host);
      return new EpochSplits(options, table[0]!, digestOfSplits(packSplits(table)));
    } catch (error) {
      throw ReadingFailure.of(error);
    }
  }

  /** @throws {ReadingFailure} if a position was saved when the dataset had other splits. */
  checkDigest(saved: string | null): void {
    if (saved === null || saved === this.digest) return;
    throw new ReadingFailure(
      new LeatError(
        "failed_precondition",
        "The iterator was saved when the dataset had other splits: its files, or what a pattern " +
          "matches, have changed since. Restore it with the files as they were",
      ),
    );
  }

  get total(): number {
    return this.#splits.length;
  }

  /** Runs the split at position `sequence` of the order. */
  open(sequence: number, { onRemainder, onRead }: SplitEvents) {
    const split = this.#order[sequence]!;
    return { split, iterator: this.#run(this.#options.chain, split, { onRemainder, onRead }) };
  }

  /** Runs the part of a split above `lower`, whose elements come from `read`. */
  openUpper(
    lower: DatasetNode,
    split: number,
    read: ReadLower,
    onRemainder: (rows: unknown) => void,
  ): DatasetIterator<unknown> {
    const { root, chain } = this.#options;
    const perSplit = new UpperNode(chain.perSplit, lower, read);
    // `lower` and all below it run elsewhere.
    const count = inPreOrder(root).indexOf(lower);
    return this.#run({ ...chain, perSplit }, split, { onRemainder }, count);
  }

  /** Reads a split of a source, without the operators above it. */
  read(source: DatasetNode, split: number): DatasetIterator<unknown> {
    const chain = { perSplit: source, batch: undefined, after: [], shuffled: false };
    return this.#run(chain, split, { isReadOnly: true });
  }

  #run(
    chain: OrderedChain,
    index: number,
    options: Partial<Pick<SplitRunOptions, "onRemainder" | "onRead" | "isReadOnly">>,
    count?: number,
  ): DatasetIterator<unknown> {
    const { seed, epoch, host, settings, stats } = this.#options;
    const split = this.#splits[index]!;
    const iterator = openSplit(chain, {
      ...{ seed, epoch, host, index, split, settings, batchMemory: this.#batchMemory },
      ...{ onRemainder: () => {}, keepsReadingFailures: true, ...options },
    });
    stats.add(iterator, count);
    return iterator;
  }
}
