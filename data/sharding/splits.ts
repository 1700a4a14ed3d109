/**
 * Splits: how tasks divide the reading of a dataset's sources.
 *
 * A split is plain data, and depends only on the files and the pipeline. A task with a `SplitSource`
 * reads the splits that it gets, one at a time, instead of whole sources.
 */
import { LeatError } from "../../core/error.ts";
import type { Host } from "../host.ts";
import { END } from "../iterator.ts";
import type { DatasetNode } from "../node.ts";
import type { GivenElements } from "../operators/sources/given.ts";

/**
 * A half-open range of a source's units: elements of an indexed source, files of a listing, or
 * parts of files.
 */
export interface Split {
  readonly start: number;
  readonly stop: number;
}

/** Where a task gets its splits: on a worker, from the dispatcher. */
export interface SplitSource {
  /** The next split of a source (numbered in pre-order) in a repetition (0, 1, …), or `END`. */
  next(sourceIndex: number, repetition: number): Promise<Split | typeof END>;
  /** Number of splits in the source's table, for all tasks together, per repetition. */
  total(sourceIndex: number): Promise<number>;
  /**
   * Elements, from `from` on, of a split that the client reads for this task (a `given` source). Left
   * out if there is no such source.
   */
  readonly read?: ReadGiven | undefined;
}

export type ReadGiven = (splitIndex: number, from: number) => Promise<GivenElements>;

/**
 * A node whose reading can be divided: a source, or an operator that itself divides the sources below
 * it, such as `zip`.
 */
export interface Splittable {
  /** Whether the node itself is divided; if not, the sources below it are. Default true. */
  readonly isDivided?: boolean;
  /** Whether all sources below it share one table, and read the same splits. */
  readonly isAligned?: boolean;
  /** Whether it joins element n of each input. Then inputs may not be divided each by itself. */
  readonly pairsInputs?: boolean;
  /** All splits in order. Ranges of elements are cut at multiples of `multiple`, if possible. */
  listSplits(host: Host, multiple: number): Promise<Split[]>;
}

/** A source that every task reads whole, or an operator with such an input. */
export interface Replicated {
  /** For an operator: the index of the input that every task reads whole. */
  readonly replicatedInput?: number | undefined;
  /** For a source: it is endless, so each task may read its own copy next to the divided sources. */
  readonly isReplicated?: boolean;
}

/** Per source, in pre-order, its splits in order. */
export type SplitTable = readonly (readonly Split[])[];

/** An indexed source is cut into about this many runs. */
const RUNS_PER_SOURCE = 256;
/** A run has at most this many elements, unless there would be more than `RUNS_MAX` runs. */
const RUN_ELEMENTS_MAX = 4096;
/** Maximum number of runs of a source: the table is held in memory. */
const RUNS_MAX = 1 << 18;

/** Cuts an indexed source of `count` elements into runs, whose length is a multiple of `multiple`. */
export function cutRuns(count: number, multiple = 1): Split[] {
  const longest = Math.max(RUN_ELEMENTS_MAX, Math.ceil(count / RUNS_MAX));
  const even = Math.min(Math.max(Math.ceil(count / RUNS_PER_SOURCE), 1), longest);
  return cutEvery(count, Math.ceil(even / multiple) * multiple);
}

/** Cuts `count` units into runs of `length`, or of a multiple if there would be too many runs. */
export function cutEvery(count: number, length: number): Split[] {
  const step = length * Math.ceil(count / (length * RUNS_MAX));
  const splits: Split[] = [];
  for (let start = 0; start < count; start += step) {
    splits.push({ start, stop: Math.min(start + step, count) });
  }
  return splits;
}

/** One split per file, in listing order. */
export function cutFiles(count: number): Split[] {
  return Array.from({ length: count }, (_, i) => ({ start: i, stop: i + 1 }));
}

/** Whether the node itself is divided into splits. */
export function isSplittable(node: DatasetNode): node is DatasetNode & Splittable {
  return "listSplits" in node && typeof node.listSplits === "function" &&
    (node as DatasetNode & Splittable).isDivided !== false;
}

/** The index of the input that every task reads whole, if there is one. */
export function replicatedInputOf(node: DatasetNode): number | undefined {
  return (node as Replicated).replicatedInput;
}

/** Whether the node is an endless source, of which each task may read its own copy. */
export function isReplicated(node: DatasetNode): boolean {
  return (node as Replicated).isReplicated === true;
}

/**
 * The whole split table of a graph.
 *
 * Errors: `unimplemented` if a source of the graph cannot be split, or is endless and the only one, or
 * if an operator would pair elements of inputs that are divided separately.
 */
export async function listSplitTable(root: DatasetNode, host: Host): Promise<SplitTable> {
  const divided = dividedSources(root);
  return await Promise.all(divided.map(([source, multiple]) => source.listSplits(host, multiple)));
}

/** Throws if `listSplitTable` would refuse the graph's operators. Reads no files. */
export function checkSplittable(root: DatasetNode): void {
  dividedSources(root);
}

/**
 * The divided sources in pre-order, each with its `multiple` for `listSplits`. Sources of datasets
 * that functions return do not count.
 */
function dividedSources(root: DatasetNode): [DatasetNode & Splittable, multiple: number][] {
  const found: [DatasetNode & Splittable, number][] = [];
  let whole: DatasetNode | undefined;
  const visit = (at: DatasetNode, multiple: number) => {
    if (at.division === "stored" || at.division === "served") throw unsplittable(at);
    if (isSplittable(at)) {
      found.push([at, multiple]);
      return;
    }
    if (at.inputs.length === 0) {
      if (!isReplicated(at)) throw unsplittable(at);
      whole ??= at;
    }
    const below = at.splitMultiple(multiple);
    let divided = 0;
    for (const input of dividedInputs(at)) {
      const before = found.length;
      visit(input, below);
      if (found.length > before) divided++;
    }
    if (divided > 1 && (at as Partial<Splittable>).pairsInputs === true) throw unpaired(at);
  };
  visit(root, 1);
  if (found.length === 0 && whole !== undefined) throw unsplittable(whole);
  return found;
}

/**
 * The operators that each task runs on its own part, although they need the whole input, if tasks
 * divide the sources. In the order in which elements pass them.
 *
 * @param isDivided Whether tasks divide what the node gives, or the sources below it together.
 */
export function operatorsOnParts(
  root: DatasetNode,
  isDivided: (node: DatasetNode) => boolean,
): DatasetNode[] {
  const found: DatasetNode[] = [];
  const visit = (at: DatasetNode): boolean => {
    if (isDivided(at)) return true;
    const getsPart = dividedInputs(at).map(visit).includes(true);
    const needsWhole = at.needsWholeInput || at.countsWholeInput;
    if (getsPart && needsWhole && at.noOp === undefined) found.push(at);
    return getsPart;
  };
  visit(root);
  return found;
}

/** Refuses a graph that reads from another service, which gives no splits. */
export function checkReadsNoService(node: DatasetNode): void {
  if (node.division === "served") throw unsplittable(node);
  node.inputs.forEach(checkReadsNoService);
}

function unsplittable({ kind, division }: DatasetNode): LeatError {
  if (division === "served") {
    return new LeatError(
      "unimplemented",
      `Splitting is not implemented for ${kind} datasets: the output of another service has no splits. ` +
        'Distribute the pipeline with processingMode "OFF", and its input with "DYNAMIC" ' +
        "and a jobName: then the workers together get every element of the input once",
    );
  }
  return new LeatError(
    "unimplemented",
    `Splitting is not implemented for ${kind} datasets; use processingMode "OFF", where each worker ` +
      `gives all elements, or read from an indexed or file source.`,
  );
}

function unpaired({ kind }: DatasetNode): LeatError {
  return new LeatError(
    "unimplemented",
    `Splitting is not implemented for ${kind} over inputs that are read by separate splits: each ` +
      "worker would pair elements that do not belong together. Use processingMode " +
      `"DETERMINISTIC", or "OFF", where each worker gives all pairs. DYNAMIC divides ${kind} if all ` +
      `inputs are range, from or fromTensorSlices, with only map, select, enumerate or prefetch ` +
      `before ${kind}, or if all but one are counter() or random().`,
  );
}

/** The inputs that tasks divide: all but the one that each of them reads whole. */
export function dividedInputs(node: DatasetNode): readonly DatasetNode[] {
  const whole = replicatedInputOf(node);
  return whole === undefined ? node.inputs : node.inputs.filter((_, i) => i !== whole);
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

  /** The next split to read, or `END` if no splits of the repetition are left. */
  async next(): Promise<Split | typeof END> {
    const split = await this.#source.next(this.#index, this.#repetition);
    if (split !== END) this.#received++;
    return split;
  }

  /** Number of splits for all tasks together. */
  total(): Promise<number> {
    return this.#source.total(this.#index);
  }

  /** Elements of a split, which the client that reads the task sends to it. */
  async read(splitIndex: number, from: number): Promise<GivenElements> {
    const { read } = this.#source;
    if (read !== undefined) return await read(splitIndex, from);
    throw new LeatError("failed_precondition", "The client of this task sends it no elements");
  }

  /** Whether this task got every split, and so has read the whole dataset. */
  async sawWholeTable(): Promise<boolean> {
    return this.#received >= await this.total();
  }
}

/** The error of saving an iterator that reads splits: only its `SplitSource` knows the other splits. */
export function readsSplitsError(): LeatError {
  return new LeatError(
    "failed_precondition",
    "An iterator that reads splits assigned by a service cannot be saved alone.",
  );
}

/** How far the splits of one iteration were read. All of its contexts share it. */
export class SplitProgress {
  readonly source: SplitSource;
  /** Per source: the repetition that its next iterator reads. */
  readonly repetitions: number[] = [];
  /** Per source: the reader of the last repetition that read it. */
  readonly readers: SplitReader[];

  constructor(source: SplitSource, readers: SplitReader[] = []) {
    this.source = source;
    this.readers = readers;
  }
}

/** The splits that the first pass over an operator's input gets, for later passes to read again. */
export class KeptSplits {
  readonly #source: SplitSource;
  /** For each source and repetition. Left out: requests that failed. */
  readonly #kept = new Map<string, Promise<Split | typeof END>[]>();

  constructor(source: SplitSource) {
    this.#source = source;
  }

  /** The splits for one more pass. Requests further ones if it reads on where the others ended. */
  pass(): SplitSource {
    const passes = new Map<string, KeptPass>();
    return {
      next: (sourceIndex, repetition) => {
        const key = `${sourceIndex}/${repetition}`;
        const kept = this.#kept.getOrInsertComputed(key, () => []);
        return passes.getOrInsertComputed(key, () => new KeptPass()).next((position) =>
          kept[position] ??= this.#request(sourceIndex, repetition, kept)
        );
      },
      total: (sourceIndex) => this.#source.total(sourceIndex),
      read: this.#source.read,
    };
  }

  #request(sourceIndex: number, repetition: number, kept: Promise<Split | typeof END>[]) {
    const split = this.#source.next(sourceIndex, repetition);
    split.catch(() => void kept.pop()); // It is the last one: no pass reads on before it is there.
    return split;
  }
}

/**
 * One pass over kept splits. Calls are answered one after the other, because a failed one takes no
 * split: its gap would be requested by the next pass, which could end there.
 */
class KeptPass {
  #position = 0;
  #last: Promise<unknown> = Promise.resolve();

  next(at: (position: number) => Promise<Split | typeof END>): Promise<Split | typeof END> {
    const next = this.#last.then(async () => {
      const split = await at(this.#position);
      this.#position++;
      return split;
    });
    this.#last = next.catch(() => {});
    return next;
  }
}
