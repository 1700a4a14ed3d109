/** Base of `sampleFromDatasets` and `chooseFromDatasets`: a selector chooses the input of each element. */
import type { IteratorContext } from "../../context.ts";
import { ElementIterator, END, type Pulled, type Token } from "../../iterator.ts";
import { ReadingFailure } from "../../iterators/reading_failure.ts";
import { AGAIN, stepOn, type Stepping } from "../../iterators/stepping.ts";

/** Chooses inputs. */
export interface Selector {
  /**
   * The index of an input, `END`, `AGAIN`, or a promise of one of these. A failed call is one
   * choice.
   */
  select(): unknown;
  save(): Promise<unknown>;
  restore(state: unknown): Promise<void>;
  release(): void;
}

/** The saved state. Inputs that have ended are `null`. */
interface DirectedState {
  readonly inputs: readonly unknown[];
  readonly selector: unknown;
  /** The chosen input, if reading it failed. */
  readonly owed?: number;
}

/** Reads the chosen input. Ends when all inputs have ended or, with `stopOnEmpty`, when one has. */
export class DirectedIterator extends ElementIterator implements Stepping {
  readonly #context: IteratorContext;
  /** An input is disposed once it has ended. */
  readonly #inputs: readonly ElementIterator[];
  readonly #selector: Selector;
  readonly #stopOnEmpty: boolean;
  /** The chosen input, if reading it failed: it is read next, without another choice. */
  #owed: number | undefined;
  /** The input that gave the last element. */
  #last = 0;

  /** `makeSelector` receives a function that returns whether an input has not ended. */
  constructor(
    context: IteratorContext,
    count: number,
    stopOnEmpty: boolean,
    makeSelector: (isOpen: (index: number) => boolean) => Selector,
  ) {
    super();
    this.#context = context;
    this.#inputs = Array.from({ length: count }, (_, i) => context.makeInput(i));
    this.#selector = makeSelector((index) => !this.#inputs[index]!.disposed);
    this.#stopOnEmpty = stopOnEmpty;
  }

  override next(): Pulled<unknown> {
    return stepOn(this, this.#context.pacer);
  }

  step(): unknown {
    if (this.disposed) return END;
    const chosen = this.#owed ?? this.#selector.select();
    return chosen instanceof Promise ? this.#chosenLater(chosen) : this.#pull(chosen);
  }

  async #chosenLater(chosen: Promise<unknown>): Promise<unknown> {
    const settled = await this.#context.waitFor(chosen);
    return this.disposed ? END : this.#pull(settled);
  }

  #pull(chosen: unknown): unknown {
    if (chosen === AGAIN) return AGAIN;
    if (chosen === END) return this.#end();
    const index = chosen as number;
    const input = this.#inputs[index]!;
    if (input.disposed) return AGAIN;
    this.#last = index;
    this.#owed = undefined;
    try {
      const element = input.next();
      return element instanceof Promise
        ? this.#later(index, element)
        : this.#accept(input, element);
    } catch (error) {
      throw this.#failed(index, error);
    }
  }

  async #later(index: number, pending: Promise<unknown>): Promise<unknown> {
    let element: unknown;
    try {
      element = await this.#context.waitFor(pending, index);
    } catch (error) {
      throw this.#failed(index, error);
    }
    return this.#accept(this.#inputs[index]!, element);
  }

  #failed(index: number, error: unknown): unknown {
    if (error instanceof ReadingFailure) this.#owed = index;
    return error;
  }

  #accept(input: ElementIterator, element: unknown): unknown {
    if (this.disposed) return END;
    if (element !== END) {
      return this.#context.stats.gave(element);
    }
    input.dispose();
    const isLast = this.#inputs.every((other) => other.disposed);
    return this.#stopOnEmpty || isLast ? this.#end() : AGAIN;
  }

  #end(): typeof END {
    this.dispose();
    return END;
  }

  override token(): Token | undefined {
    const token = this.#inputs[this.#last]!.token();
    return token === undefined ? undefined : [this.#last, token];
  }

  override again(token: Token): unknown {
    const [index, below] = token as [number, Token];
    return this.#inputs[index]!.again(below);
  }

  protected override async saveState(): Promise<DirectedState> {
    const inputs: unknown[] = [];
    for (const input of this.#inputs) inputs.push(await input.save());
    const owed = this.#owed === undefined ? {} : { owed: this.#owed };
    return { inputs, selector: await this.#selector.save(), ...owed };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    const saved = state as DirectedState;
    const { inputs, selector } = saved;
    if ("owed" in saved) this.#owed = saved.owed;
    for (const [i, input] of this.#inputs.entries()) await input.restore(inputs[i]);
    await this.#selector.restore(selector);
  }

  protected override release(): void {
    for (const input of this.#inputs) input.dispose();
    this.#selector.release();
  }
}
