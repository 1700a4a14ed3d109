/**
 * What one of several workers does in a distributed save.
 *
 * All state of a save is in its folder. A run of splits counts once its note exists, and is part of
 * the dataset once the ledger lists it. A run without a note is written again by another worker, under
 * other file names. So a worker may die at any moment, and one that was declared dead may continue.
 */
import { LeatError } from "../../../core/error.ts";
import { type DatasetIterator, openIterator } from "../../dataset_iterator.ts";
import type { Host } from "../../host.ts";
import type { DatasetNode } from "../../node.ts";
import { chainOf, inOrder } from "../../deterministic/chain.ts";
import { ListedHost } from "../../deterministic/listed_host.ts";
import { openSplit } from "../../deterministic/split_run.ts";
import { listSplitTable, type SplitTable } from "../../sharding/splits.ts";
import { Ledger } from "../ledger.ts";
import { begin } from "./begin.ts";
import { enter, type EntryPipeline } from "./entry.ts";
import type { DistributedFolder } from "./folder.ts";
import { RunWriter } from "./run_writer.ts";
import type {
  Begun,
  DistributedSaveSettings,
  RunReport,
  SaveWork,
  WorkOf,
  Written,
} from "./work.ts";

/** The split table of a dataset that cannot be divided into splits: one worker produces all of it. */
const WHOLE: SplitTable = [[{ start: 0, stop: 1 }]];

/** A worker's part in a distributed save. */
export class DistributedSaver {
  readonly #pipeline: EntryPipeline;
  readonly #folder: DistributedFolder;
  /** The host of the splits. They share one listing of their source's files. */
  readonly #listed: ListedHost;
  #running: DatasetIterator<unknown> | undefined;
  #disposed = false;

  /** @param seed Determines all random draws. */
  constructor(node: DatasetNode, settings: DistributedSaveSettings, seed: bigint, host: Host) {
    const ordered = inOrder(node);
    this.#pipeline = { node: ordered, chain: chainOf(ordered), seed };
    this.#folder = { host, settings, ledger: new Ledger(host, settings.folder) };
    this.#listed = new ListedHost(host);
  }

  /** Does one step of a save. An element that fails ends the step, and the save. */
  async do(work: SaveWork): Promise<Begun | RunReport | Written> {
    switch (work.work) {
      case "begin":
        return await begin(this.#folder, () => this.#table(), work.owner);
      case "run":
        return await this.#write(work);
      case "entry":
        return await enter(this.#folder, this.#pipeline, work);
      case "failure":
        return await this.#noteFailure(work);
    }
  }

  /** Stops the current step. Nothing of it counts. */
  dispose(): void {
    this.#disposed = true;
    this.#running?.return();
  }

  async #table(): Promise<SplitTable> {
    const { node, chain } = this.#pipeline;
    return chain === undefined ? WHOLE : await listSplitTable(node, this.#folder.host);
  }

  async #write({ id, first, splits }: WorkOf<"run">): Promise<RunReport> {
    const writer = new RunWriter(this.#folder, id, first, splits.length);
    try {
      for (const [i, split] of splits.entries()) {
        let rest: unknown;
        await this.#writeSplit(writer, split, (batch) => rest = batch);
        if (rest !== undefined) await writer.writeRest(first + i, split.index, rest);
      }
      const report = await writer.finish();
      await writer.removeIfLate();
      return report;
    } finally {
      writer.abandon();
    }
  }

  async #writeSplit(
    writer: RunWriter,
    split: WorkOf<"run">["splits"][number],
    onRemainder: (remainder: unknown) => void,
  ): Promise<void> {
    await using running = this.#open(split, onRemainder);
    this.#running = running;
    for (;;) {
      const { done, value } = await running.next();
      // A disposed iterator ends like one without more elements.
      if (this.#disposed) throw new LeatError("cancelled", "Saving was stopped");
      if (done) return;
      await writer.write(value);
    }
  }

  #open(
    { index, start, stop }: WorkOf<"run">["splits"][number],
    onRemainder: (remainder: unknown) => void,
  ): DatasetIterator<unknown> {
    const { node, chain, seed } = this.#pipeline;
    const host = this.#listed;
    if (chain === undefined) {
      return openIterator(node, { host, seed, needsOrder: true, isReadOnly: true });
    }
    const split = { start, stop };
    return openSplit(chain, { host, seed, epoch: 0, index, split, isReadOnly: true, onRemainder });
  }

  /**
   * Records the failure for readers that wait for the saved dataset. Many workers may be asked to: the
   * first one does.
   */
  async #noteFailure({ id, owner, error }: WorkOf<"failure">): Promise<Written> {
    const { code, message } = error;
    await this.#folder.ledger.change((head) => {
      const isMine = head?.id === id && head.joint?.owner === owner;
      const isNew = isMine && head.failure === undefined;
      return Promise.resolve(isNew ? { ...head, failure: { code, message } } : undefined);
    });
    return { elements: 0, sizeBytes: 0 };
  }
}
