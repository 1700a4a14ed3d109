/**
 * Base of `map` and `filter`. If elements and results are available at once, they call their function
 * on blocks of elements in one loop, and otherwise on one element at a time.
 */
import {
  type Outcome,
  restoreOutcome,
  type SavedOutcome,
  saveOutcome,
} from "../../elements/answer.ts";
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
import {
  originOf,
  type ParallelCalls,
  type SavedSlot,
  type WindowState,
} from "./parallel_calls.ts";
import { UnaryIterator } from "../unary.ts";

/**
 * The token of the result of call `index` on the element with `token`: one number if both are
 * equal.
 */
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

interface CallingState extends WindowState {
  /** Elements that were read and not passed to the function yet. */
  readonly leftover: readonly unknown[];
}

/** An answer that waits in the iterator. */
interface Waiting extends Outcome {
  /** Only of a restored element that can be recomputed. */
  readonly token?: Token | undefined;
}

export abstract class CallingIterator extends UnaryIterator implements LoopStage {
  abstract readonly kind: LoopKind;
  readonly call: Call;
  protected readonly fn: NodeFunction;
  readonly check: SpecCheck | undefined;
  protected readonly block = new InputBlock();
  /** Answers that `next()` has to give before it continues; their values may be promises. */
  readonly #outcomes: Waiting[] = [];
  /** The token of the last of them that was given, and how many calls had been made then. */
  #taken: { readonly token: Token | undefined; readonly calls: number } | undefined;
  /** How many calls returned a promise; counted up to 2. */
  #waits = 0;
  /** Rule `mapParallelization`: makes all calls after the second that returned a promise. */
  #wide: ParallelCalls | undefined;
  /** The operators whose functions are called in one loop, the lowest first; this one is the last. */
  #stages: readonly CallingIterator[] | undefined;
  readonly #loops: { [sink in "elements" | "numbers"]?: FusedLoop | undefined } = {};

  /** `check`: checks the function's results, if they are elements. */
  constructor(context: IteratorContext, fn: NodeFunction, check?: SpecCheck) {
    super(context);
    this.fn = fn;
    this.check = check;
    this.call = new Call(fn, context, check === undefined ? {} : { check });
  }

  abstract deferResult(element: unknown, result: unknown): boolean;

  /**
   * Returns, and counts, the output for an element and the call's result; `AGAIN` if there is none.
   */
  protected abstract conclude(element: unknown, result: unknown): unknown;

  /** Makes an iterator of the same operator and input that makes several calls at once. */
  protected abstract widen(): ParallelCalls;

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
      const stage = stages[i]!;
      // `next()` makes calls that are timed, and takes elements that wait between two fused operators.
      run = stage.call.plainRun(run);
      if (run <= 0 || stage.hasFirst || (i > 0 && !stage.block.isEmpty)) return NO_BLOCK;
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

  defer(outcome: Outcome): void {
    // It may reject before `next()` gives it, and `next()` may never be called.
    if (outcome.value instanceof Promise) outcome.value.catch(() => {});
    if (!this.disposed) this.#outcomes.push(outcome);
  }

  /** Whether `takeFirst()` gives the next answer. */
  protected get hasFirst(): boolean {
    return this.#outcomes.length > 0 || this.#wide !== undefined;
  }

  /** An answer that the loop left to `next()`, or one of the parallel calls. */
  protected takeFirst(): Pulled<unknown> {
    const outcome = this.#outcomes.shift();
    if (outcome === undefined) return this.#wide!.next();
    if (outcome.failed) throw outcome.value;
    this.#taken = { token: outcome.token, calls: this.call.index };
    return outcome.value as Pulled<unknown>;
  }

  /** Notes that a call returned a promise. The first may only have waited for its function to be loaded. */
  protected waits(): void {
    if (this.#waits < 2) this.#waits++;
    const widens = this.#waits === 2 && this.context.uses("mapParallelization");
    if (widens && this.#wide === undefined && this.block.isEmpty && this.#outcomes.length === 0) {
      this.#wide = this.widen().resume(this.call.index);
      this.#wide.call.rows = this.call.rows;
    }
  }

  /** The next element of the input. */
  protected pull(): Pulled<unknown> {
    return this.block.isEmpty ? this.input.next() : this.block.shift();
  }

  override token(): Token | undefined {
    if (this.#wide !== undefined) return this.#wide.token();
    // The calls of waiting answers were made before: the element is of one only if none followed.
    if (this.#taken?.calls === this.call.index) return this.#taken.token;
    // No token if more elements or answers wait: the input's token is that of the last of these.
    if (!this.block.isEmpty || this.#outcomes.length > 0) return undefined;
    return this.tokenOf(this.call.index - 1, this.input.token());
  }

  /** The token of the output of call `index` on the element with `inputToken`. */
  protected abstract tokenOf(index: number, inputToken: Token | undefined): Token | undefined;

  protected override async saveState(): Promise<unknown> {
    if (this.#wide === undefined) return await super.saveState();
    return { ...await this.#wide.save() as object, leftover: [] };
  }

  protected override async ownState(): Promise<CallingState> {
    const answers = await Promise.all(this.#outcomes.map(settledAnswer));
    return {
      window: answers.filter((answer) => answer !== undefined).map((answer) => saveOutcome(answer)),
      calls: this.call.index,
      leftover: this.block.rest,
    };
  }

  protected override async restoreOwn(state: unknown): Promise<void> {
    const { window, calls, leftover } = state as CallingState;
    this.call.resume(calls);
    this.block.put(leftover);
    for (const saved of window) this.#outcomes.push(await this.#restoreSlot(saved));
  }

  /** The answer of a call that the saved iterator had made or begun. */
  async #restoreSlot(saved: SavedSlot): Promise<Waiting> {
    const origin = originOf(saved);
    if (origin === undefined) {
      const answer = await restoreOutcome(saved as SavedOutcome, this.input);
      if (!answer.failed) this.stats.gave(answer.value);
      return answer;
    }
    try {
      const element = await this.input.again(origin.token);
      const result = await this.call.again(origin.index, element);
      const token = this.tokenOf(origin.index, origin.token);
      return { failed: false, value: this.conclude(element, result), token };
    } catch (error) {
      return { failed: true, value: this.stats.failed(error) };
    }
  }

  protected override release(): void {
    super.release();
    this.call.stop();
    this.block.clear();
    this.#outcomes.length = 0;
    this.#wide?.dispose();
  }
}

/** The answer once its promise has settled; undefined if the element is left out. */
async function settledAnswer(outcome: Outcome): Promise<Outcome | undefined> {
  if (!(outcome.value instanceof Promise)) return outcome.value === AGAIN ? undefined : outcome;
  try {
    const value: unknown = await outcome.value;
    return value === AGAIN ? undefined : { failed: false, value };
  } catch (error) {
    return { failed: true, value: error };
  }
}
