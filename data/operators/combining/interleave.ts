/** `interleave`: the elements of several datasets, round-robin. */
import type { FlatMapOptions } from "../calling/flat_map.ts";
import { Call, NodeFunction } from "../../udf/call.ts";
import { checkInteger, checkOptionalBoolean, optionsOf } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import type { Captures } from "../../udf/user_function.ts";
import { type HeldElements, heldFrom } from "../../elements/held.ts";
import { type ElementIterator, END, type Pulled } from "../../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../../node.ts";
import { AUTOTUNE, checkParallelCalls } from "../../parallelism.ts";
import { ReadingFailure } from "../../iterators/reading_failure.ts";
import { checkSpec, type ElementSpec } from "../../elements/spec.ts";
import { SpecCheck } from "../../elements/spec_check.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import { Opened, type OpenedState } from "./opened.ts";
import { OF_ITS_DATASETS, ParallelInterleave } from "./parallel_interleave.ts";
import { ElementwiseIterator } from "../elementwise.ts";
import { UnaryNode } from "../unary.ts";

/** Datasets open at once by default and for `AUTOTUNE`. Fixed, because it determines the order. */
const CYCLE_LENGTH_DEFAULT = 4;

/** The options without the function's captures. */
export type InterleaveAttributes = Omit<InterleaveOptions<Captures>, "captures">;

/** Options of `interleave`. */
export interface InterleaveOptions<C extends Captures> extends FlatMapOptions<C> {
  /** How many datasets are open at once. Default, and for `AUTOTUNE`: 4. */
  readonly cycleLength?: number | undefined;
  /** How many elements in a row come from one dataset. Default 1. */
  readonly blockLength?: number | undefined;
  /** How many elements are fetched at once, or `AUTOTUNE`. Default: one, on demand. */
  readonly numParallelCalls?: number | undefined;
  /** Whether parallel fetches keep the order. Default: as `withOptions` says (true). */
  readonly deterministic?: boolean | undefined;
}

export class InterleaveNode extends UnaryNode {
  static readonly options = optionsOf<InterleaveOptions<Captures>>("interleave", {
    cycleLength: true,
    blockLength: true,
    numParallelCalls: true,
    deterministic: true,
    spec: true,
    captures: true,
  });
  override readonly division = "split";
  override readonly adviceFacts = { callsSideBySide: true, opensDatasets: true } as const;
  readonly fn: NodeFunction;
  readonly cycleLength: number;
  readonly blockLength: number;
  readonly numParallelCalls: number | undefined;
  readonly deterministic: boolean | undefined;
  readonly check: SpecCheck | undefined;
  override readonly elementSpec: ElementSpec;

  constructor(input: DatasetNode, fn: NodeFunction, options: InterleaveAttributes = {}) {
    super("interleave", input);
    const { cycleLength = AUTOTUNE, blockLength = 1 } = options;
    this.fn = fn;
    this.elementSpec = checkSpec("interleave", options.spec);
    this.check = SpecCheck.of(this.elementSpec);
    this.cycleLength = cycleLength === AUTOTUNE
      ? CYCLE_LENGTH_DEFAULT
      : checkInteger("interleave", "cycleLength", cycleLength, 1);
    this.blockLength = checkInteger("interleave", "blockLength", blockLength, 1);
    this.numParallelCalls = checkParallelCalls("interleave", options.numParallelCalls);
    this.deterministic = checkOptionalBoolean("interleave", "deterministic", options.deterministic);
  }

  /** The dataset that `fn` returns may draw, also if the function itself does not. */
  override get drawsNumbers(): boolean {
    return true;
  }

  override get attributes(): Attributes {
    const { fn, cycleLength, blockLength, numParallelCalls, deterministic } = this;
    return {
      fn,
      cycleLength,
      blockLength,
      numParallelCalls,
      deterministic,
      spec: this.elementSpec,
    };
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    const { numParallelCalls, deterministic = context.deterministic } = this;
    return numParallelCalls === undefined
      ? new InterleaveIterator(context, this)
      : new ParallelInterleave(context, this, numParallelCalls, deterministic);
  }
}

registerNode("interleave", {
  fromWire: (a, [input]) => new InterleaveNode(input!, NodeFunction.among(a, "fn"), a),
});

interface InterleaveState {
  readonly slots: (OpenedState | null)[];
  readonly turn: number;
  readonly givenInBlock: number;
  readonly inputEnded: boolean;
  readonly calls: number;
}

class InterleaveIterator extends ElementwiseIterator {
  readonly #call: Call;
  readonly #check: SpecCheck | undefined;
  readonly #cycleLength: number;
  readonly #blockLength: number;
  /** One slot per open dataset. An empty slot is filled when it comes up. */
  readonly #slots: (Opened | undefined)[] = [];
  #turn = 0;
  #givenInBlock = 0;
  #open = 0;
  #inputEnded = false;

  constructor(context: IteratorContext, { fn, cycleLength, blockLength, check }: InterleaveNode) {
    super(context);
    this.#check = check;
    this.#call = new Call(fn, context);
    this.#cycleLength = cycleLength;
    this.#blockLength = blockLength;
  }

  override step(): unknown {
    if (this.#open === 0 && this.#inputEnded) return END;
    const current = this.#slots[this.#turn];
    if (current !== undefined) {
      const element = this.#pullFrom(current);
      return element instanceof Promise ? this.#innerLater(element) : this.#inner(element);
    }
    if (!this.#inputEnded) return super.step();
    this.#advance();
    return AGAIN;
  }

  /** A failed element counts in its block like any other. */
  #pullFrom({ iterator }: Opened): Pulled<unknown> {
    try {
      return iterator.next();
    } catch (error) {
      throw this.#countFailed(error);
    }
  }

  /** Gives an element, or closes a dataset that has ended, and with it its block. */
  #inner(element: unknown): unknown {
    if (element !== END) {
      this.#count();
      if (this.#check === undefined || this.#check.fits(element)) return this.stats.gave(element);
      throw this.stats.failed(this.#check.failure(element, OF_ITS_DATASETS));
    }
    this.#slots[this.#turn]?.iterator.dispose();
    this.#slots[this.#turn] = undefined;
    this.#open--;
    this.#advance();
    return AGAIN;
  }

  #countFailed(error: unknown): unknown {
    if (!(error instanceof ReadingFailure)) this.#count();
    return error;
  }

  #count(): void {
    if (++this.#givenInBlock === this.#blockLength) this.#advance();
  }

  #advance(): void {
    this.#givenInBlock = 0;
    // Slots that never held a dataset are skipped once no more datasets come.
    const places = this.#inputEnded ? this.#slots.length : this.#cycleLength;
    this.#turn = this.#turn + 1 < places ? this.#turn + 1 : 0;
  }

  protected override accept(outer: unknown): unknown {
    if (outer === END) {
      this.#inputEnded = true;
      return AGAIN;
    }
    const held = heldFrom(this.input, outer);
    const made = this.#call.one(outer);
    return made instanceof Promise
      ? made.then((element) => this.#place(held, element))
      : this.#place(held, made);
  }

  #place(outer: HeldElements, made: unknown): typeof AGAIN {
    if (this.disposed) return AGAIN;
    const { index } = this.#call;
    this.#slots[this.#turn] = new Opened(this.#call, index - 1, outer, made, this.context);
    this.#open++;
    return AGAIN;
  }

  async #innerLater(pending: Promise<unknown>): Promise<unknown> {
    let element: unknown;
    try {
      element = await this.arrival(pending);
    } catch (error) {
      throw this.#countFailed(error);
    }
    return this.disposed ? END : this.#inner(element);
  }

  protected override async ownState(): Promise<InterleaveState> {
    const slots: (OpenedState | null)[] = [];
    for (let at = 0; at < this.#slots.length; at++) {
      slots.push(await this.#slots[at]?.save() ?? null); // some slots may never have been used
    }
    return {
      slots,
      turn: this.#turn,
      givenInBlock: this.#givenInBlock,
      inputEnded: this.#inputEnded,
      calls: this.#call.index,
    };
  }

  protected override async restoreOwn(state: unknown): Promise<void> {
    const { slots, turn, givenInBlock, inputEnded, calls } = state as InterleaveState;
    this.#call.resume(calls);
    for (const slot of slots) {
      this.#slots.push(
        slot === null
          ? undefined
          : await Opened.restore(slot, this.#call, this.input, this.context),
      );
    }
    this.#open = slots.filter((slot) => slot !== null).length;
    this.#turn = checkInteger(
      "restore",
      "turn",
      turn,
      0,
      Math.max(this.#cycleLength, slots.length) - 1,
    );
    this.#givenInBlock = givenInBlock;
    this.#inputEnded = inputEnded;
  }

  protected override release(): void {
    for (const slot of this.#slots) slot?.iterator.dispose();
    this.#slots.length = 0;
    this.#open = 0;
    this.#inputEnded = true;
    super.release();
  }
}
