/** The last rows of splits that do not fill a batch: they wait for rows of other splits. */
import { type CarriedRows, type Joined, RemainderJoin } from "../../data/deterministic/join.ts";

/** The waiting rows of one split, in a saved position: the last ones of `remainder`. */
export interface Carried extends CarriedRows {
  readonly split: number;
  readonly remainder: unknown;
}

export class Remainders {
  readonly #join: RemainderJoin;
  /** Remainders with waiting rows, by sequence. */
  readonly #remainders = new Map<number, { readonly split: number; readonly remainder: unknown }>();

  constructor(...join: ConstructorParameters<typeof RemainderJoin>) {
    this.#join = new RemainderJoin(...join);
  }

  save(): Carried[] {
    return this.#join.carried.map((rows) => ({
      ...rows,
      ...this.#remainders.get(rows.sequence)!,
    }));
  }

  restore(carried: readonly Carried[]): void {
    for (const { sequence, split, remainder, ...rows } of carried) {
      this.#remainders.set(sequence, { split, remainder });
      this.#join.add(sequence, split, remainder, rows);
    }
  }

  /** Whether the waiting rows fill a batch. */
  get hasBatch(): boolean {
    return this.#join.hasBatch;
  }

  get isEmpty(): boolean {
    return this.#join.carried.length === 0;
  }

  /** Adds the rows of a split. */
  add(sequence: number, split: number, remainder: unknown): void {
    this.#remainders.set(sequence, { split, remainder });
    this.#join.add(sequence, split, remainder);
  }

  /** The batch that the rows fill, or the error of one of them. */
  async next(): Promise<Joined | undefined> {
    const joined = await this.#join.next();
    const waiting = new Set(this.#join.carried.map((at) => at.sequence));
    for (const at of this.#remainders.keys()) if (!waiting.has(at)) this.#remainders.delete(at);
    return joined;
  }

  /** The last, partial batch, if rows are left, and errors before it. */
  end(): Promise<Joined | undefined> {
    return this.#join.end();
  }
}
