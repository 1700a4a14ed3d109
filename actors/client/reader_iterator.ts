/** Elements that operators in the reader's process make of the streams of a DETERMINISTIC dataset. */
import { restoreShared, saveShared } from "../../data/checkpoint/shared_state.ts";
import type { IteratorContext } from "../../data/context.ts";
import { ElementIterator, END, NO_BLOCK, type Pulled, type Token } from "../../data/iterator.ts";
import { ReadingFailure } from "../../data/iterators/reading_failure.ts";
import { AGAIN, stepOn, type Stepping } from "../../data/iterators/stepping.ts";
import type { DatasetNode } from "../../data/node.ts";

/** One of several consumers, and the operators that it runs. */
export interface Consumer {
  readonly index: number;
  readonly count: number;
  readonly graph: DatasetNode;
}

interface ConsumerState {
  /** The number of the next element or error, counting those of all consumers. */
  readonly number: number;
  readonly shared: unknown;
  readonly input: unknown;
}

/**
 * Gives what a graph gives, as elements of the operator that reads the dataset. One of several
 * consumers drops the elements and errors of the others.
 */
export class ReaderIterator extends ElementIterator implements Stepping {
  readonly #context: IteratorContext;
  readonly #graphContext: IteratorContext;
  readonly #input: ElementIterator;
  readonly #consumer: Consumer | undefined;
  /** See `ConsumerState`. */
  #number = 0;

  /** @param graphContext The context of the graph's last operator. */
  constructor(context: IteratorContext, graphContext: IteratorContext, consumer?: Consumer) {
    super();
    this.#context = context;
    this.#graphContext = graphContext;
    this.#input = graphContext.makeIterator();
    this.#consumer = consumer;
  }

  override next(): Pulled<unknown> {
    return stepOn(this, this.#context.pacer);
  }

  override nextBlock(into: unknown[], count: number): number {
    if (this.#consumer !== undefined) return NO_BLOCK;
    const given = this.#input.nextBlock(into, count);
    if (given > 0) this.#context.stats.gaveBlock(into, given);
    return given;
  }

  step(): unknown {
    try {
      const element = this.#input.next();
      return element instanceof Promise ? this.#later(element) : this.#give(element);
    } catch (error) {
      return this.#failed(error);
    }
  }

  async #later(pending: Promise<unknown>): Promise<unknown> {
    let element: unknown;
    try {
      element = await this.#context.waitFor(pending);
    } catch (error) {
      return this.#failed(error);
    }
    return this.disposed ? END : this.#give(element);
  }

  #give(element: unknown): unknown {
    if (element === END) return END;
    return this.#takesNext() ? this.#context.stats.gave(element) : AGAIN;
  }

  #failed(error: unknown): typeof AGAIN {
    if (error instanceof ReadingFailure || this.#takesNext()) throw error;
    return AGAIN;
  }

  /** Whether the next element, or its error, is this consumer's. */
  #takesNext(): boolean {
    if (this.#consumer === undefined) return true;
    const { index, count } = this.#consumer;
    return this.#number++ % count === index;
  }

  override token(): Token | undefined {
    return this.#input.token();
  }

  override again(token: Token): unknown {
    return this.#input.again(token);
  }

  protected override async saveState(): Promise<unknown> {
    const input = await this.#input.save();
    if (this.#consumer === undefined) return input;
    const shared = saveShared(this.#consumer.graph, this.#graphContext);
    return { number: this.#number, shared, input };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    if (this.#consumer === undefined) return await this.#input.restore(state);
    const { number, shared, input } = state as ConsumerState;
    restoreShared(this.#consumer.graph, shared, this.#graphContext);
    await this.#input.restore(input);
    this.#number = number;
  }

  protected override release(): void {
    this.#input.dispose();
  }
}
