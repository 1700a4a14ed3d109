/** `repeat`: repeats the input. */
import type { IteratorContext } from "../context.ts";
import { AGAIN, stepOn, type Stepping } from "../iterators/stepping.ts";
import { ElementIterator, END, NO_BLOCK, type Pulled, type Token } from "../iterator.ts";
import { type DatasetNode, registerNode, UNKNOWN_CARDINALITY } from "../node.ts";
import { ReadingFailure } from "../iterators/reading_failure.ts";
import { mayOverlap } from "../optimizer/rules/shuffle_and_repeat_fusion.ts";
import { ShuffleIterator } from "./shuffling/shuffle.ts";
import { CountingNode } from "./take_skip.ts";

export class RepeatNode extends CountingNode {
  /** @param count How often; -1: endlessly. */
  constructor(input: DatasetNode, count: unknown = -1) {
    super("repeat", input, count);
  }

  /** Endless for any input not known to be empty. */
  override get cardinality(): number {
    const once = this.input.cardinality;
    if (once === 0 || this.count === 0) return 0;
    if (this.count < 0) return Infinity;
    return once === UNKNOWN_CARDINALITY ? UNKNOWN_CARDINALITY : once * this.count;
  }

  override tokenAt(index: number): Token | undefined {
    const once = this.input.cardinality;
    const token = this.input.tokenAt(index % once);
    return token === undefined ? undefined : [Math.floor(index / once), token];
  }

  override makeIterator(context: IteratorContext): RepeatIterator {
    return new RepeatIterator(context, this);
  }
}

registerNode("repeat", { fromWire: (a, [input]) => new RepeatNode(input!, a.count) });

interface RepeatState {
  readonly repetition: number;
  readonly gave: boolean;
  readonly ended: boolean;
  /** `undefined` if the repetition has not begun. */
  readonly input: unknown;
}

class RepeatIterator extends ElementIterator implements Stepping {
  readonly #context: IteratorContext;
  readonly #count: number;
  #repetition = 0;
  #input: ElementIterator | undefined;
  /** Whether this repetition has given anything, even an error. */
  #gave = false;
  /** What the context's `sharedReads` was when this repetition began. */
  #sharedReads = 0;
  #ended = false;
  /** The input in another repetition, opened to recompute an element of it. */
  #other: { readonly repetition: number; readonly input: ElementIterator } | undefined;

  /** Whether rule `shuffleAndRepeatFusion` lets repetitions overlap. */
  readonly #overlaps: boolean;
  /** The input of the next repetition, once it reads ahead. */
  #next: ShuffleIterator | undefined;

  constructor(context: IteratorContext, { count, inputs, cardinality }: RepeatNode) {
    super();
    this.#context = context;
    this.#count = cardinality === 0 ? 0 : count;
    this.#overlaps = context.uses("shuffleAndRepeatFusion") && !context.readsSplits &&
      mayOverlap(inputs[0]!);
  }

  override next(): Pulled<unknown> {
    return stepOn(this, this.#context.pacer);
  }

  override nextBlock(into: unknown[], count: number): number {
    const given = this.#input?.nextBlock(into, count) ?? NO_BLOCK;
    if (given > 0) {
      this.#gave = true;
      this.#context.stats.gaveBlock(into, given);
    }
    return given;
  }

  step(): unknown {
    if (this.#ended || this.disposed || this.#repetition === this.#count) return END;
    const input = this.#input ??= this.#open();
    let element: Pulled<unknown>;
    try {
      element = input.next();
    } catch (error) {
      throw this.#gaveError(error);
    }
    if (element instanceof Promise) return this.#later(element);
    return element === END ? this.#again() : this.#give(element);
  }

  /** The input of this repetition, which may have read ahead. */
  #open(): ElementIterator {
    const next = this.#next;
    this.#next = undefined;
    this.#sharedReads = this.#context.sharedReads;
    return next ?? this.#context.repeated(this.#repetition).makeInput();
  }

  #give(element: unknown): unknown {
    this.#gave = true;
    if (this.#overlaps) this.#readAhead();
    return this.#context.stats.gave(element);
  }

  async #later(pending: Promise<unknown>): Promise<unknown> {
    let element: unknown;
    try {
      element = await this.#context.waitFor(pending);
    } catch (error) {
      throw this.#gaveError(error);
    }
    return element === END ? this.#again() : this.#give(element);
  }

  #readAhead(): void {
    const current = this.#input, next = this.#repetition + 1;
    if (next === this.#count || !(current instanceof ShuffleIterator) || !current.isEmptying) {
      return;
    }
    this.#next ??= this.#context.repeated(next).makeInput() as ShuffleIterator;
    this.#next.readAhead();
  }

  #gaveError(error: unknown): unknown {
    if (!(error instanceof ReadingFailure)) this.#gave = true;
    return error;
  }

  #again(): unknown {
    this.#input?.dispose();
    this.#input = undefined;
    if (!this.#gave && this.#count < 0) return this.#afterNothing();
    this.#gave = false;
    this.#repetition++;
    return AGAIN;
  }

  /**
   * A repetition without any element ends an endless `repeat()`, or one of an empty input would never
   * return. The exception is a task that was assigned no part of the data, but may be assigned one in
   * a later repetition, or may give elements of a cached part then. Between repetitions it yields,
   * because nothing else may make it wait.
   */
  async #afterNothing(): Promise<unknown> {
    this.#ended = await this.#context.sawWholeInput(this.#sharedReads);
    this.#repetition++;
    if (!this.#ended) await this.#context.pacer.yield();
    return AGAIN;
  }

  override token(): Token | undefined {
    const token = this.#input?.token();
    return token === undefined ? undefined : [this.#repetition, token];
  }

  override again(token: Token): unknown {
    const [repetition, ofInput] = token as [number, Token];
    return this.#inputOf(repetition).again(ofInput);
  }

  /** The input of a repetition: the one being read, or one that only recomputes elements. */
  #inputOf(repetition: number): ElementIterator {
    if (repetition === this.#repetition && this.#input !== undefined) return this.#input;
    if (this.#other?.repetition !== repetition) {
      this.#other?.input.dispose();
      this.#other = { repetition, input: this.#context.repeated(repetition).makeInput() };
      if (this.disposed) this.#other.input.dispose(); // it recomputes elements all the same
    }
    return this.#other.input;
  }

  protected override async saveState(): Promise<RepeatState> {
    return {
      repetition: this.#repetition,
      gave: this.#gave,
      ended: this.#ended,
      input: await this.#input?.save(),
    };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    const { repetition, gave, ended, input } = state as RepeatState;
    this.#repetition = repetition;
    this.#gave = gave;
    this.#ended = ended;
    if (input === undefined) return;
    this.#input = this.#context.repeated(repetition).makeInput();
    await this.#input.restore(input);
  }

  protected override release(): void {
    this.#input?.dispose();
    this.#input = undefined;
    this.#next?.dispose();
    this.#next = undefined;
    this.#other?.input.dispose();
    this.#other = undefined;
  }
}
