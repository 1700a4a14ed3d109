/** Joins the remaining rows of an ordered chain's splits to batches. */
import { openIterator } from "../dataset_iterator.ts";
import type { IterationOptions } from "../iteration_options.ts";
import type { DatasetNode } from "../node.ts";
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
}

/** A batch of rows from several splits, or why it could not be made. */
export type Joined = { readonly element: unknown } | { readonly error: unknown };

interface Row {
  readonly sequence: number;
  readonly row: unknown;
}

export class RemainderJoin {
  readonly #chain: OrderedChain;
  readonly #options: Pick<IterationOptions, "host" | "seed" | "epoch" | "within">;
  readonly #size: number;
  #rows: Row[] = [];
  #spec: ElementSpec;

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
    return [...counts].map(([sequence, rows]) => ({ sequence, rows }));
  }

  /**
   * Adds the remaining rows of a split.
   *
   * @param lastRows How many of its last rows to add, if an earlier batch has others.
   * @returns The batch that the rows complete, if any.
   * @throws {ReadingFailure} if operators after the batch run in another process, which failed.
   */
  async add(
    sequence: number,
    index: number,
    remainder: unknown,
    lastRows = Infinity,
  ): Promise<Joined | undefined> {
    const from = Math.max(0, rowsIn(remainder) - lastRows);
    const { rows: added, spec } = rowsOf(
      remainder,
      from,
      this.#chain.batch?.inputs[0]?.elementSpec,
    );
    this.#spec = spec;
    for (const row of added) this.#rows.push({ sequence, row });
    if (this.#rows.length < this.#size) return undefined;
    const rows = this.#rows.slice(0, this.#size);
    this.#rows = this.#rows.slice(this.#size);
    return await this.#batch(rows, index);
  }

  /** The last, partial batch, if rows are left. */
  async end(): Promise<Joined | undefined> {
    const rows = this.#rows;
    this.#rows = [];
    if (rows.length === 0 || this.#chain.batch?.attributes["dropRemainder"] === true) return;
    return await this.#batch(rows, -1);
  }

  async #batch(rows: readonly Row[], index: number): Promise<Joined | undefined> {
    const source: DatasetNode = new FromNode(rows.map(({ row }) => row), this.#spec);
    const graph = this.#chain.after.reduce(
      (below, node) => withInputs(node, [below]),
      gathering(this.#chain.batch!, source),
    );
    await using batches = openIterator(graph, {
      ...this.#options,
      salt: JOINED_SALT,
      split: index + 1,
      keepsReadingFailures: true,
    });
    try {
      const { done, value } = await batches.next();
      return done ? undefined : { element: value };
    } catch (error) {
      if (error instanceof ReadingFailure) throw error;
      return { error };
    }
  }
}
