/**
 * The context of a running pipeline: the host, the pace, the coordinates of luck, the splits of the
 * task, and the place of the operator whose iterator is being made.
 */
import { RandomStream } from "../core/philox.ts";
import type { Host } from "./host.ts";
import type { ElementIterator } from "./iterator.ts";
import type { DatasetNode } from "./node.ts";
import { Pacer } from "./pacer.ts";
import { isSplittable, SplitReader, type SplitSource } from "./splits.ts";
import { type IteratorStats, OperatorStats } from "./stats.ts";

/** One occurrence of a node in the graph of one iteration. */
interface Place {
  /** What the operator's iterators share during this iteration, such as a cache. */
  shared: unknown;
  readonly node: DatasetNode;
  readonly stats: OperatorStats;
  readonly sourceIndex: number | undefined;
  readonly inputs: readonly Place[];
}

/** The coordinates of luck that hold for a whole iteration, below operator and index. */
export interface Luck {
  /** The stream that all others are forked from; made when it is first needed. */
  readonly root: () => RandomStream;
  /** Whether somebody chose the seed; otherwise it was drawn for this iteration. */
  readonly seeded: boolean;
  /** Sets a task apart from others that run the same dataset with the same seed; 0 otherwise. */
  readonly salt: bigint;
  /** Counts the iterators made from a dataset, and its repetitions. */
  readonly epoch: number;
  /** The number of the split that is run as a dataset of its own; 0 otherwise. */
  readonly split: number;
}

/** How far the splits of one iteration were read; shared by all of its contexts. */
class SplitProgress {
  readonly source: SplitSource;
  /** Per source: the repetition that its next iterator reads. */
  readonly repetitions: number[] = [];
  /** Per source: its newest reader. */
  readonly readers: SplitReader[] = [];

  constructor(source: SplitSource) {
    this.source = source;
  }
}

/** Handed to `makeIterator`: all that the iterator of one operator may know of its surroundings. */
export class IteratorContext {
  readonly host: Host;
  readonly pacer: Pacer;
  readonly luck: Luck;
  /** Where this operator counts what it does. */
  readonly stats: OperatorStats;
  readonly #place: Place;
  readonly #splits: SplitProgress | undefined;

  private constructor(
    host: Host,
    pacer: Pacer,
    luck: Luck,
    place: Place,
    splits: SplitProgress | undefined,
  ) {
    this.host = host;
    this.pacer = pacer;
    this.luck = luck;
    this.stats = place.stats;
    this.#place = place;
    this.#splits = splits;
  }

  /** The context of a graph's last operator. */
  static root(node: DatasetNode, host: Host, luck: Luck, splits?: SplitSource): IteratorContext {
    return new IteratorContext(
      host,
      new Pacer(host),
      luck,
      placesOf(node),
      splits === undefined ? undefined : new SplitProgress(splits),
    );
  }

  /** The operator's number in its graph: pre-order, the last operator being 0. */
  get operatorNumber(): number {
    return this.#place.stats.number;
  }

  /** Makes the iterator of this operator itself. */
  makeIterator(): ElementIterator {
    return this.#place.node.makeIterator(this);
  }

  /** Makes the iterator of this operator's input. */
  makeInput(index = 0): ElementIterator {
    const place = this.#place.inputs[index]!;
    const { host, pacer, luck } = this;
    return place.node.makeIterator(new IteratorContext(host, pacer, luck, place, this.#splits));
  }

  /** The same place in repetition `repetition` of an operator above. */
  repeated(repetition: number): IteratorContext {
    const luck = { ...this.luck, epoch: epochOfRepetition(this.luck.epoch, repetition) };
    return new IteratorContext(this.host, this.pacer, luck, this.#place, this.#splits);
  }

  /** The luck of this operator in an epoch and split: Philox over all of these. */
  randomStream(epoch = this.luck.epoch): RandomStream {
    const { root, split } = this.luck;
    return new RandomStream(root(), [this.operatorNumber, epoch, split]);
  }

  /**
   * The luck of an operator that was given a seed of its own: the same for two operators with the
   * same seed. Epoch 0 gives the same in every repetition.
   */
  seededStream(seed: bigint, epoch: number): RandomStream {
    const { salt, split } = this.luck;
    return new RandomStream(seed, [String(salt), epoch, split]);
  }

  /** The context of a dataset that a user function made; it has its own luck and no splits. */
  nested(node: DatasetNode, root: () => RandomStream): IteratorContext {
    const { seeded, salt } = this.luck;
    const luck = { root, seeded, salt, epoch: 0, split: 0 };
    return new IteratorContext(this.host, this.pacer, luck, placesOf(node), undefined);
  }

  /**
   * For source iterators: the splits to read instead of the whole source, or `undefined` when the
   * source is read whole. Each call stands for one more repetition of the source.
   */
  openSplits(): SplitReader | undefined {
    const index = this.#place.sourceIndex;
    if (this.#splits === undefined || index === undefined) return undefined;
    const { source, repetitions, readers } = this.#splits;
    const repetition = repetitions[index] ?? 0;
    repetitions[index] = repetition + 1;
    return readers[index] = new SplitReader(source, index, repetition);
  }

  /** Whether this task reads splits, or is one, and so sees but a part of the sources. */
  get readsSplits(): boolean {
    return this.#splits !== undefined || this.luck.split !== 0;
  }

  /** What all iterators of this operator share during this iteration; made by the first. */
  shared<T>(make: () => T): T {
    return (this.#place.shared ??= make()) as T;
  }

  /**
   * Whether what came through in the last repetition is all there is: false when other tasks were
   * handed a part of some source below.
   */
  async sawWholeInput(): Promise<boolean> {
    if (this.#splits === undefined) return true;
    for (const index of sourceIndexesOf(this.#place)) {
      const reader = this.#splits.readers[index];
      if (reader === undefined || !(await reader.sawWholeTable())) return false;
    }
    return true;
  }

  /** The figures of this operator and all below it. */
  collectStats(): IteratorStats {
    const collected: Readonly<OperatorStats>[] = [];
    const visit = (place: Place) => {
      collected.push(place.stats.copy());
      place.inputs.forEach(visit);
    };
    visit(this.#place);
    return collected;
  }
}

/** Numbers every occurrence of a node in pre-order, and every source among them. */
function placesOf(root: DatasetNode): Place {
  let numbers = 0;
  let sources = 0;
  // What lies below a splittable source is read whole by every task.
  const place = (node: DatasetNode, belowSource: boolean): Place => {
    const stats = new OperatorStats(node.kind, numbers++);
    const isSource = !belowSource && isSplittable(node);
    const sourceIndex = isSource ? sources++ : undefined;
    const inputs = node.inputs.map((input) => place(input, belowSource || isSource));
    return { node, stats, sourceIndex, inputs, shared: undefined };
  };
  return place(root, false);
}

function sourceIndexesOf(place: Place): number[] {
  if (place.sourceIndex !== undefined) return [place.sourceIndex];
  return place.inputs.flatMap(sourceIndexesOf);
}

/** Plainly the repetition in the first epoch; distinct for repetitions within later ones. */
function epochOfRepetition(epoch: number, repetition: number): number {
  if (epoch === 0) return repetition;
  return (Math.imul(epoch, 0x9e3779b1) + repetition) >>> 0;
}
