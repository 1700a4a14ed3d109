/** The last rows of splits that do not fill a batch: they wait for rows of other splits. */
import { type Joined, RemainderJoin } from "../../data/deterministic/join.ts";

/** The waiting rows of one split, in a saved position. */
export interface Carried {
  readonly sequence: number;
  readonly split: number;
  /** How many of the last rows of `remainder` still wait. */
  readonly rows: number;
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
    return this.#join.carried.map(({ sequence, rows }) => ({
      ...{ sequence, rows },
      ...this.#remainders.get(sequence)!,
    }));
  }

  async restore(carried: readonly Carried[]): Promise<void> {
    for (const { sequence, split, rows, remainder } of carried) {
      this.#remainders.set(sequence, { split, remainder });
      await this.#join.add(sequence, split, remainder, rows);
    }
  }

  /** Adds the rows of a split. Returns the batch that they complete, if any. */
  async add(sequence: number, split: number, remainder: unknown): Promise<Joined | undefined> {
    this.#remainders.set(sequence, { split, remainder });
    const joined = await this.#join.add(sequence, split, remainder);
    const waiting = new Set(this.#join.carried.map((at) => at.sequence));
    for (const at of this.#remainders.keys()) if (!waiting.has(at)) this.#remainders.delete(at);
    return joined;
  }

  /** The last, partial batch, if rows are left. */
  end(): Promise<Joined | undefined> {
    return this.#join.end();
  }
}
