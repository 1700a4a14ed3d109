/**
 * Splits: how the reading of a dataset's sources is divided among tasks.
 *
 * A split is plain data and depends on the data and the pipeline alone. A task that is given a
 * `SplitSource` reads the splits it is handed, one at a time, instead of whole sources.
 */
import { LeatError } from "../../core/error.ts";
import type { Host } from "../host.ts";
import { END } from "../iterator.ts";
import type { DatasetNode } from "../node.ts";

/**
 * A half-open run of a source's units: elements of an indexed source, files of a listing, or parts
 * of files.
 */
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
  /** False where the sources below it are divided instead; left out, it is divided itself. */
  readonly isDivided?: boolean;
  /** Whether its splits are those of all sources below, which read the same ones side by side. */
  readonly isJoint?: boolean;
  /** All splits in order. `multiple`: cut runs of elements at multiples of this, where it can. */
  listSplits(host: Host, multiple: number): Promise<Split[]>;
}

/** A node that every task reads whole, or has an input that is, whatever else is divided. */
export interface Replicated {
  /** Of an operator: the input that says what to do with the others. */
  readonly replicatedInput?: number | undefined;
  /** Of a source: it has no end, so that each task may have one of its own beside what is divided. */
  readonly isReplicated?: boolean;
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

/** True for nodes that implement `Splittable`, and are divided themselves. */
export function isSplittable(node: DatasetNode): node is DatasetNode & Splittable {
  return "listSplits" in node && typeof node.listSplits === "function" &&
    (node as DatasetNode & Splittable).isDivided !== false;
}

/** The number of the input that every task reads whole, if there is one. */
export function replicatedInputOf(node: DatasetNode): number | undefined {
  return (node as Replicated).replicatedInput;
}

/** True for sources without end, of which each task may have one of its own. */
export function isReplicated(node: DatasetNode): boolean {
  return (node as Replicated).isReplicated === true;
}

/** The splittable sources of a graph in pre-order; function bodies are not entered. */
export function sourcesOf(node: DatasetNode): (DatasetNode & Splittable)[] {
  const sources: (DatasetNode & Splittable)[] = [];
  const visit = (at: DatasetNode) => {
    if (isSplittable(at)) sources.push(at);
    else dividedInputs(at).forEach(visit);
  };
  visit(node);
  return sources;
}

/**
 * The whole split table of a graph.
 *
 * Errors: `unimplemented` when a source of the graph cannot be split, or has no end and stands alone.
 */
export async function listSplitTable(root: DatasetNode, host: Host): Promise<SplitTable> {
  const divided = dividedSources(root);
  return await Promise.all(divided.map(([source, multiple]) => source.listSplits(host, multiple)));
}

/** Refuses a graph that `listSplitTable` would refuse whatever there is to read. */
export function checkSplittable(root: DatasetNode): void {
  dividedSources(root);
}

/** The sources that are divided, in `sourcesOf` order, each with what its runs should be a multiple of. */
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
    for (const input of dividedInputs(at)) visit(input, below);
  };
  visit(root, 1);
  if (found.length === 0 && whole !== undefined) throw unsplittable(whole);
  return found;
}

/** Refuses a graph that begins with what another service gives, which cannot be handed out by splits. */
export function checkUnserved(node: DatasetNode): void {
  if (node.division === "served") throw unsplittable(node);
  node.inputs.forEach(checkUnserved);
}

function unsplittable({ kind, division }: DatasetNode): LeatError {
  if (division === "served") {
    return new LeatError(
      "unimplemented",
      `Splitting is not implemented for ${kind} datasets: what another service gives has no splits. ` +
        'Distribute the pipeline with processingMode "OFF", and what it begins with with "DYNAMIC" ' +
        "and a jobName: then the workers get every element of it once, together",
    );
  }
  return new LeatError(
    "unimplemented",
    `Splitting is not implemented for ${kind} datasets; shard by whole datasets (OFF) or read from an ` +
      `indexed or file source.`,
  );
}

function dividedInputs(node: DatasetNode): readonly DatasetNode[] {
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

  /** The next split to read, or `END` when the repetition has no more for anybody. */
  async next(): Promise<Split | typeof END> {
    const split = await this.#source.next(this.#index, this.#repetition);
    if (split !== END) this.#received++;
    return split;
  }

  /** How many splits there are for all tasks together. */
  total(): Promise<number> {
    return this.#source.total(this.#index);
  }

  /** True when this task was handed every split there is, so that what it saw is all there is. */
  async sawWholeTable(): Promise<boolean> {
    return this.#received >= await this.total();
  }
}

/** The error of saving an iterator that reads splits: whoever hands them out knows the rest. */
export function readsSplits(): LeatError {
  return new LeatError(
    "failed_precondition",
    "An iterator that reads splits handed out by a service cannot be saved by itself.",
  );
}
