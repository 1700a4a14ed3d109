/**
 * Gathering: what `batch` and `paddedBatch` have in common.
 */
import { type Column, ScalarColumn } from "../columns.ts";
import type { IteratorContext } from "../context.ts";
import { END, type Pulled } from "../iterator.ts";
import type { Pacer } from "../pacer.ts";
import { AGAIN, giveWay, stepLater, type Stepping } from "../stepping.ts";
import { UnaryIterator } from "./unary.ts";

/** Writes elements into a column made for the first one, and gives it when it is full. */
export class GatheringIterator extends UnaryIterator implements Stepping {
  readonly #size: number;
  readonly #dropRemainder: boolean;
  readonly #columnFor: (element: unknown) => Column;
  readonly #pacer: Pacer;
  /** What was gathered; it stays when an element fails. */
  #column: Column | undefined;
  /** The column's own place for numbers, where it takes them as they are. */
  #numbers: Float64Array | undefined;
  #count = 0;
  #ended = false;

  constructor(
    context: IteratorContext,
    { size, dropRemainder }: { readonly size: number; readonly dropRemainder: boolean },
    columnFor: (element: unknown) => Column,
  ) {
    super(context);
    this.#size = size;
    this.#dropRemainder = dropRemainder;
    this.#columnFor = columnFor;
    this.#pacer = context.pacer;
  }

  /** Numbers go straight to their place, since most of what is spent on them would be detours. */
  override next(): Pulled<unknown> {
    if (this.#ended) return END;
    const pacer = this.#pacer;
    let rounds = 0;
    for (;;) {
      const element = this.input.next();
      if (typeof element === "number" && this.#numbers !== undefined) {
        this.#numbers[this.#count] = element;
        if (++this.#count === this.#size) return this.#give();
      } else {
        if (element instanceof Promise) return stepLater(this, pacer, this.#later(element));
        const result = this.#add(element);
        if (result !== AGAIN) return result;
      }
      if (++rounds >= pacer.stride) {
        if (pacer.due(rounds)) return stepLater(this, pacer, giveWay(pacer));
        rounds = 0;
      }
    }
  }

  step(): unknown {
    const element = this.input.next();
    return element instanceof Promise ? this.#later(element) : this.#add(element);
  }

  async #later(pending: Promise<unknown>): Promise<unknown> {
    return this.#add(await this.arrival(pending));
  }

  #add(element: unknown): unknown {
    if (element === END) return this.#finish();
    if (this.#column === undefined) this.#begin(element);
    this.#column!.write(this.#count, element);
    return ++this.#count === this.#size ? this.#give() : AGAIN;
  }

  #begin(element: unknown): void {
    const column = this.#columnFor(element);
    this.#column = column;
    this.#numbers = column instanceof ScalarColumn ? column.plainNumbers : undefined;
  }

  #finish(): unknown {
    this.#ended = true;
    if (this.#count === 0 || this.#dropRemainder || this.disposed) return END;
    return this.#give();
  }

  #give(): unknown {
    const batch = this.#column!.finish(this.#count);
    this.#column = this.#numbers = undefined;
    this.#count = 0;
    this.stats.elements++;
    return batch;
  }

  protected override release(): void {
    super.release();
    this.#column = this.#numbers = undefined;
    this.#count = 0;
    this.#ended = true;
  }
}
