/**
 * Where the splits of an ordered chain are put together: what they have left over becomes batches.
 */
import { rowAt, rowSpec, specOf } from "../components.ts";
import { type IterationOptions, openIterator } from "../dataset_iterator.ts";
import type { DatasetNode } from "../node.ts";
import { FromNode } from "../operators/from.ts";
import { ReadingFailure } from "../reading_failure.ts";
import { type ElementSpec, mapSpec } from "../spec.ts";
import { type OrderedChain, withInputs } from "./chain.ts";
import { gathering, rowsIn, sizeOf } from "./split_run.ts";

/** Sets the luck of batches that were joined apart from that of their splits' own. */
const JOINED_SALT = 1n;

/** Rows that a split has left over and that wait for others to fill a batch. */
export interface CarriedRows {
  /** The split's place in the order of splits. */
  readonly sequence: number;
  /** How many of its last rows. */
  readonly rows: number;
}

/** A batch of rows from several splits, or why it could not be made. */
export type Joined = { readonly element: unknown } | { readonly error: unknown };

interface Row {
  readonly sequence: number;
  readonly row: unknown;
}

/** Joins remainders in the order of splits. */
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
    this.#size = chain.batch === undefined ? Infinity : sizeOf(chain.batch);
  }

  /** The rows that wait, by the splits they come from. */
  get carried(): CarriedRows[] {
    const counts = new Map<number, number>();
    for (const { sequence } of this.#rows) counts.set(sequence, (counts.get(sequence) ?? 0) + 1);
    return [...counts].map(([sequence, rows]) => ({ sequence, rows }));
  }

  /**
   * Takes what a split has left over.
   *
   * @param lastRows how many of its last rows: fewer than all where the others are in a batch that
   * was given before.
   * @returns the batch that it completes, if it does.
   * @throws {ReadingFailure} where operators after the batch run elsewhere, and cannot go on.
   */
  async add(
    sequence: number,
    index: number,
    remainder: unknown,
    lastRows = Infinity,
  ): Promise<Joined | undefined> {
    const count = rowsIn(remainder);
    this.#spec = mapSpec(specOf(remainder), rowSpec);
    for (let i = Math.max(0, count - lastRows); i < count; i++) {
      this.#rows.push({ sequence, row: rowAt(remainder, i) });
    }
    if (this.#rows.length < this.#size) return undefined;
    const rows = this.#rows.slice(0, this.#size);
    this.#rows = this.#rows.slice(this.#size);
    return await this.#batch(rows, index);
  }

  /** What is left when there are no more splits. */
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
