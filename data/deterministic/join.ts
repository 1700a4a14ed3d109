/** Joins the remaining rows of an ordered chain's splits to batches. */
import { openIterator } from "../dataset_iterator.ts";
import type { IterationOptions } from "../iteration_options.ts";
import type { DatasetNode } from "../node.ts";
import type { GatheringNode } from "../operators/batching/gathering.ts";
import { FromNode } from "../operators/sources/from.ts";
import { ReadingFailure } from "../iterators/reading_failure.ts";
import type { ElementSpec } from "../elements/spec.ts";
import { type OrderedChain, withInputs } from "./chain.ts";
import { rowsIn, rowsOf } from "./remainder.ts";
import { batchSizeOf, gathering } from "./split_run.ts";

/** Makes random numbers of joined batches differ from those of the splits' own batches. */
const JOINED_SALT = 1n;

/** Rows left over from a split that wait for others to fill a batch. */
export interface CarriedRows {
  /** The split's position in the order of splits. */
  readonly sequence: number;
  /** How many of the split's last rows wait. */
  readonly rows: number;
  /** How many rows were dropped because they did not fit the first of these. Default 0. */
  readonly refused?: number;
}

/** A batch of rows from several splits, or why it could not be made. */
export type Joined = { readonly element: unknown } | { readonly error: unknown };

interface Row {
  readonly sequence: number;
  /** The split's index in its table. */
  readonly index: number;
  readonly row: unknown;
  readonly spec: ElementSpec;
}

export class RemainderJoin {
  readonly #chain: OrderedChain;
  readonly #options: Pick<IterationOptions, "host" | "seed" | "epoch" | "within">;
  readonly #size: number;
  #rows: Row[] = [];
  #misfits = 0;
  /** How many rows were dropped because they did not fit the first waiting row. */
  #refused = 0;

  constructor(
    chain: OrderedChain,
    options: Pick<IterationOptions, "host" | "seed" | "epoch" | "within">,
  ) {
    this.#chain = chain;
    this.#options = options;
    this.#size = chain.batch === undefined ? Infinity : batchSizeOf(chain.batch);
  }

  /** The waiting rows, by split. */
  get carried(): CarriedRows[] {
    const counts = new Map<number, number>();
    for (const { sequence } of this.#rows) counts.set(sequence, (counts.get(sequence) ?? 0) + 1);
    const [first, ...others] = [...counts].map(([sequence, rows]) => ({ sequence, rows }));
    if (first === undefined) return [];
    return [this.#refused === 0 ? first : { ...first, refused: this.#refused }, ...others];
  }

  /** Whether the waiting rows fill a batch. */
  get hasBatch(): boolean {
    return this.#rows.length >= this.#size;
  }

  /** How many rows were dropped, each with an error, because they fitted no batch. */
  get misfits(): number {
    return this.#misfits;
  }

  /**
   * Adds the remaining rows of a split. Take what they complete, by `next()`, before the next call.
   *
   * @param carried How many of its last rows to add, if an earlier batch has others.
   */
  add(
    sequence: number,
    index: number,
    remainder: unknown,
    { rows: lastRows, refused = 0 }: Omit<CarriedRows, "sequence"> = { rows: Infinity },
  ): void {
    if (this.#rows.length === 0) this.#refused = refused;
    const from = Math.max(0, rowsIn(remainder) - lastRows);
    const { rows, spec } = rowsOf(remainder, from, this.#chain.batch?.inputs[0]?.elementSpec);
    for (const row of rows) this.#rows.push({ sequence, index, row, spec });
  }

  /**
   * The batch that the waiting rows fill, or the error of a row that is dropped because they do not
   * fit together: the others wait on. Undefined if they fill none. A split can fill a batch and have
   * errors, so call it until then.
   *
   * @throws {ReadingFailure} if operators after the batch run in another process, which failed.
   */
  async next(): Promise<Joined | undefined> {
    if (!this.hasBatch) return undefined;
    const rows = this.#rows.slice(0, this.#size);
    return await this.#batch(rows, rows.at(-1)!.index);
  }

  /** After `next()`: the last, partial batch, if rows are left, and errors before it; call it as `next()`. */
  async end(): Promise<Joined | undefined> {
    if (this.#rows.length === 0 || this.#chain.batch?.attributes["dropRemainder"] === true) return;
    return await this.#batch(this.#rows, -1);
  }

  async #batch(rows: readonly Row[], index: number): Promise<Joined | undefined> {
    const elements = rows.map(({ row }) => row);
    const source: DatasetNode = new FromNode(elements, rows[0]!.spec, true);
    const gather = gathering(this.#chain.batch!, source) as GatheringNode;
    const graph = this.#chain.after.reduce(
      (below, node) => withInputs(node, [below]),
      gather as DatasetNode,
    );
    await using batches = openIterator(graph, {
      ...this.#options,
      salt: JOINED_SALT,
      split: index + 1,
      keepsReadingFailures: true,
    });
    try {
      const { done, value } = await batches.next();
      this.#take(rows.length);
      return done ? undefined : { element: value };
    } catch (error) {
      if (error instanceof ReadingFailure) throw error;
      const fitting = gather.fitting(elements);
      if (fitting.every(Boolean)) this.#take(rows.length);
      else this.#dropMisfit(rows, fitting);
      return { error };
    }
  }

  #take(rows: number): void {
    this.#rows = this.#rows.slice(rows);
    this.#refused = 0;
  }

  /**
   * Drops a row that does not fit with the first one, or the first one, if as many such rows were
   * dropped as fit with it: an odd row that waits first must not cost all later ones.
   */
  #dropMisfit(rows: readonly Row[], fitting: readonly boolean[]): void {
    this.#misfits++;
    if (this.#refused < fitting.filter(Boolean).length) {
      this.#refused++;
      // The rows of a split are alike, and the last ones are saved, so its first row goes.
      const { sequence } = rows[fitting.indexOf(false)]!;
      this.#rows.splice(this.#rows.findIndex((row) => row.sequence === sequence), 1);
    } else {
      this.#rows.shift();
      if (fitting[1] !== true) this.#refused = 0;
    }
  }
}
