/**
 * Splits: how the reading of a dataset's sources is divided among tasks.
 *
 * A split is plain data and depends on the data and the pipeline alone. A task that is given a
 * `SplitSource` reads the splits it is handed, one at a time, instead of whole sources.
 */
import { LeatError } from "../core/error.ts";
import type { Host } from "./host.ts";
import { END } from "./iterator.ts";
import type { DatasetNode } from "./node.ts";

/** A half-open run of a source's units: elements of an indexed source, or files of a listing. */
export interface Split {
  readonly start: number;
  readonly stop: number;
}

/** Where a task's splits come from: for a service's worker, the dispatcher. */
export interface SplitSource {
  /** The next split of a source (numbered as in `sourcesOf`) in a repetition (0, 1, …), or `END`. */
  next(sourceIndex: number, repetition: number): Promise<Split | typeof END>;
  /** How many splits the source's table holds for all tasks together, per repetition. */
  total(sourceIndex: number): Promise<number>;
}

/** A source node whose reading can be divided. */
export interface Splittable {
  /** All splits in order. `multiple`: cut runs of elements at multiples of this, where it can. */
  listSplits(host: Host, multiple: number): Promise<Split[]>;
}

/** Per source, in `sourcesOf` order, its splits in order. */
export type SplitTable = readonly (readonly Split[])[];

/** A source is cut into about this many runs… */
const RUNS_PER_SOURCE = 256;
/** …of at most this many elements… */
const RUN_ELEMENTS_MAX = 4096;
/** …unless there would be more runs than this: the table is held in memory. */
const RUNS_MAX = 1 << 18;

/** Cuts an indexed source of `count` elements into runs (a multiple of `multiple` long). */
export function cutRuns(count: number, multiple = 1): Split[] {
  const longest = Math.max(RUN_ELEMENTS_MAX, Math.ceil(count / RUNS_MAX));
  const even = Math.min(Math.max(Math.ceil(count / RUNS_PER_SOURCE), 1), longest);
  const length = Math.ceil(even / multiple) * multiple;
  const splits: Split[] = [];
  for (let start = 0; start < count; start += length) {
    splits.push({ start, stop: Math.min(start + length, count) });
  }
  return splits;
}

/** One split per file, in listing order. */
export function cutFiles(count: number): Split[] {
  return Array.from({ length: count }, (_, i) => ({ start: i, stop: i + 1 }));
}

/** True for nodes that implement `Splittable`. */
export function isSplittable(node: DatasetNode): node is DatasetNode & Splittable {
  return "listSplits" in node && typeof node.listSplits === "function";
}

/** The splittable sources of a graph in pre-order; function bodies are not entered. */
export function sourcesOf(node: DatasetNode): (DatasetNode & Splittable)[] {
  const sources: (DatasetNode & Splittable)[] = [];
  const visit = (at: DatasetNode) => {
    if (isSplittable(at)) sources.push(at);
    else at.inputs.forEach(visit);
  };
  visit(node);
  return sources;
}

/**
 * The whole split table of a graph.
 *
 * Errors: `unimplemented` when a source of the graph cannot be split.
 */
export async function listSplitTable(root: DatasetNode, host: Host): Promise<SplitTable> {
  const found: Promise<Split[]>[] = [];
  const visit = (at: DatasetNode, multiple: number) => {
    if (isSplittable(at)) {
      found.push(at.listSplits(host, multiple));
      return;
    }
    if (at.inputs.length === 0) {
      throw new LeatError(
        "unimplemented",
        `Splitting is not implemented for a ${at.kind} source; shard by whole datasets (OFF) or ` +
          `read from an indexed or file source.`,
      );
    }
    const below = at.splitMultiple(multiple);
    for (const input of at.inputs) visit(input, below);
  };
  visit(root, 1);
  return await Promise.all(found);
}

/** Reads one source's splits during one repetition. */
export class SplitReader {
  readonly #source: SplitSource;
  readonly #index: number;
  readonly #repetition: number;
  #received = 0;

  constructor(source: SplitSource, index: number, repetition: number) {
    this.#source = source;
    this.#index = index;
    this.#repetition = repetition;
  }

  /** The next split to read, or `END` when the repetition has no more for anybody. */
  async next(): Promise<Split | typeof END> {
    const split = await this.#source.next(this.#index, this.#repetition);
    if (split !== END) this.#received++;
    return split;
  }

  /** True when this task was handed every split there is, so that what it saw is all there is. */
  async sawWholeTable(): Promise<boolean> {
    return this.#received >= await this.#source.total(this.#index);
  }
}
