/**
 * Base of `map` and `filter`. They call their function on whole blocks of elements where elements
 * and results are available at once, and otherwise on one element at a time.
 */
import { type Answer, restoreAnswer, saveAnswer, type SavedAnswer } from "../../elements/answer.ts";
import { InputBlock } from "../../elements/block.ts";
import { Call, type NodeFunction } from "../../udf/call.ts";
import type { IteratorContext } from "../../context.ts";
import { type ElementIterator, NO_BLOCK, type Pulled, type Token } from "../../iterator.ts";
import type { SpecCheck } from "../../elements/spec_check.ts";
import { fusionOf } from "../../optimizer/rules/fusion.ts";
import {
  type FusedLoop,
  fusedLoop,
  type LoopKind,
  type LoopSink,
  type LoopStage,
} from "../../optimizer/fused_loop.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import { UnaryIterator } from "../unary.ts";

/** The token of a call's result for the element with this token; a number where both are the same. */
export function tokenOfCall(index: number, token: Token | undefined): Token | undefined {
  return token === undefined || token === index ? token : [index, token];
}

/** Recomputes the element with this token by calling the function on the same input element. */
export function againByCall(call: Call, input: ElementIterator, token: Token): unknown {
  const [index, below] = typeof token === "number" ? [token, token] : token as [number, Token];
  const element = input.again(below);
  return element instanceof Promise
    ? element.then((arrived) => call.again(index, arrived))
    : call.again(index, element);
}

interface CallingState {
  /** How many calls were begun. */
  readonly calls: number;
  /** Elements that were read and not passed to the function yet. */
  readonly leftover: readonly unknown[];
  readonly outcome: SavedAnswer | null;
  readonly input: unknown;
}

export abstract class CallingIterator extends UnaryIterator implements LoopStage {
  abstract readonly kind: LoopKind;
  readonly call: Call;
  readonly check: SpecCheck | undefined;
  protected readonly block = new InputBlock();
  /** The answer within a block that `next()` has to give; its value may be a promise. */
  #outcome: Answer | undefined;
  /** The operators whose functions are called in one loop, the lowest first; this one is the last. */
  #stages: readonly CallingIterator[] | undefined;
  readonly #loops: { [sink in "elements" | "numbers"]?: FusedLoop | undefined } = {};

  /** `check`: checks the function's results, where they are elements. */
  constructor(context: IteratorContext, fn: NodeFunction, check?: SpecCheck) {
    super(context);
    this.check = check;
    this.call = new Call(fn, context, check === undefined ? {} : { check });
  }

  abstract leaves(element: unknown, result: unknown): boolean;

  override nextBlock(into: unknown[], count: number): number {
    return this.#runLoop("elements", into, 0, count);
  }

  /**
   * Like `nextBlock()`, for numbers: writes them to `into` from `to` on. An element of another type
   * is left to `next()`.
   */
  nextNumbers(into: Float64Array, to: number, count: number): number {
    return this.#runLoop("numbers", into, to, count);
  }

  #runLoop(sink: "elements" | "numbers", into: LoopSink, to: number, count: number): number {
    const stages = this.#stages ??= this.#findStages();
    let run = count;
    for (let i = 0; i < stages.length; i++) {
      const { call, block, hasOutcome } = stages[i]!;
      // Calls that are timed, and elements that are between two operators, are left to `next()`.
      run = call.plainRun(run);
      if (run <= 0 || hasOutcome || (i > 0 && !block.isEmpty)) return NO_BLOCK;
    }
    const [{ block, input }] = stages as [CallingIterator];
    if (block.isEmpty) {
      const read = block.read(input, run);
      if (read <= 0) return read;
    }
    block.stop = Math.min(block.end, block.at + run);
    if (!(sink in this.#loops)) this.#loops[sink] = fusedLoop(stages, sink);
    const given = this.#loops[sink]?.(block, stages, into, to) ?? NO_BLOCK;
    return this.disposed ? NO_BLOCK : given;
  }

  #findStages(): CallingIterator[] {
    const { input } = this;
    const isFused = input instanceof CallingIterator &&
      this.context.uses(fusionOf(this.kind, input.kind));
    return isFused ? [...input.#findStages(), this] : [this];
  }

  leave(outcome: Answer): void {
    // It may reject before it is asked for, and may never be asked for.
    if (outcome.value instanceof Promise) outcome.value.catch(() => {});
    if (!this.disposed) this.#outcome = outcome;
  }

  /** Whether a loop left an answer for `next()`. */
  get hasOutcome(): boolean {
    return this.#outcome !== undefined;
  }

  /** The answer that a loop left for `next()`. */
  protected takeOutcome(): Answer | undefined {
    const outcome = this.#outcome;
    this.#outcome = undefined;
    return outcome;
  }

  /** The next element of the input. */
  protected pull(): Pulled<unknown> {
    return this.block.isEmpty ? this.input.next() : this.block.shift();
  }

  /** The token of the element pulled last; none where others were read with it. */
  protected inputToken(): Token | undefined {
    return this.block.isEmpty ? this.input.token() : undefined;
  }

  protected override async saveState(): Promise<CallingState> {
    const outcome = await settledOutcome(this.#outcome);
    return {
      calls: this.call.index,
      leftover: this.block.rest,
      outcome: outcome === undefined ? null : saveAnswer(outcome),
      input: await this.input.save(),
    };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    const { calls, leftover, outcome, input } = state as CallingState;
    await this.input.restore(input);
    this.call.resume(calls);
    this.block.put(leftover);
    if (outcome === null) return;
    this.#outcome = await restoreAnswer(outcome, this.input);
    if (!this.#outcome.failed) this.stats.gave(this.#outcome.value); // another iterator made it
  }

  protected override release(): void {
    super.release();
    this.call.stop();
    this.block.clear();
    this.#outcome = undefined;
  }
}

/** The outcome once its promise has settled; undefined if the element is left out. */
async function settledOutcome(outcome: Answer | undefined): Promise<Answer | undefined> {
  if (!(outcome?.value instanceof Promise)) return outcome;
  try {
    const value: unknown = await outcome.value;
    return value === AGAIN ? undefined : { failed: false, value };
  } catch (error) {
    return { failed: true, value: error };
  }
}
