/** `map`: applies a function to every element, one at a time or several at once. */
import type { Captures } from "../../udf/user_function.ts";
import type { FunctionOptions } from "../../dataset_types.ts";
import type { InputBlock } from "../../elements/block.ts";
import { isThenable, NodeFunction } from "../../udf/call.ts";
import { checkOptionalBoolean, optionsOf } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { type ElementIterator, END, NO_BLOCK, type Pulled, type Token } from "../../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../../node.ts";
import { checkParallelCalls } from "../../parallelism.ts";
import { checkSpec, type ElementSpec } from "../../elements/spec.ts";
import { SpecCheck } from "../../elements/spec_check.ts";
import { againByCall, CallingIterator, tokenOfCall } from "./calling.ts";
import { ParallelCalls } from "./parallel_calls.ts";
import { UnaryNode } from "../unary.ts";

/** How `map` runs. */
export interface MapAttributes {
  /** At most this many calls at once; without it one call at a time. */
  readonly numParallelCalls?: number | undefined;
  /** Whether elements keep their order; by default as set by `withOptions`. */
  readonly deterministic?: boolean | undefined;
  /** The spec of the function's results, if declared. */
  readonly spec?: ElementSpec;
}

/** Options of `map`. */
export interface MapOptions<C extends Captures> extends FunctionOptions<C> {
  /** At most this many calls at once, or `AUTOTUNE`. Default 1, and 32 for `python(…)`. */
  readonly numParallelCalls?: number;
  /** Whether parallel calls keep the order of elements. Default: as `withOptions` says (true). */
  readonly deterministic?: boolean;
  /**
   * The spec of the function's results, for `elementSpec` and the dtype of batched numbers. A result
   * of another dtype, shape or structure fails with `invalid_argument`. A part that is `undefined`,
   * and a length of null, accept anything. Default: unknown.
   */
  readonly spec?: ElementSpec;
}

export class MapNode extends UnaryNode {
  static readonly options = optionsOf<MapOptions<Captures>>("map", {
    numParallelCalls: true,
    deterministic: true,
    spec: true,
    captures: true,
  });
  override readonly division = "element";
  override readonly adviceFacts = { callsSideBySide: true } as const;
  readonly fn: NodeFunction;
  readonly options: MapAttributes;
  readonly #check: SpecCheck | undefined;

  constructor(input: DatasetNode, fn: NodeFunction, options: MapAttributes = {}) {
    super("map", input);
    this.fn = fn;
    this.options = {
      numParallelCalls: checkParallelCalls("map", options.numParallelCalls ?? fn.callsByDefault),
      deterministic: checkOptionalBoolean("map", "deterministic", options.deterministic),
      spec: checkSpec("map", options.spec),
    };
    this.#check = SpecCheck.of(this.options.spec);
  }

  override get attributes(): Attributes {
    return { fn: this.fn, ...this.options };
  }

  override get elementSpec(): ElementSpec {
    return this.options.spec;
  }

  override get cardinality(): number {
    return this.input.cardinality;
  }

  override splitMultiple(multiple: number): number {
    return multiple;
  }

  override tokenAt(index: number): Token | undefined {
    return tokenOfCall(index, this.input.tokenAt(index));
  }

  override get fusesCalls(): boolean {
    return this.options.numParallelCalls === undefined;
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    const { numParallelCalls, deterministic = context.deterministic } = this.options;
    if (numParallelCalls === undefined) return new MapIterator(context, this.fn, this.#check);
    return new ParallelMapIterator(context, this.fn, numParallelCalls, deterministic, this.#check);
  }
}

registerNode("map", {
  fromWire: (a, [input]) => new MapNode(input!, NodeFunction.among(a, "fn"), a as MapAttributes),
});

class MapIterator extends CallingIterator {
  readonly #check: SpecCheck | undefined;
  /** Rule `mapFusion`: the operator below, if both functions are called in one loop. */
  readonly #below: MapIterator | undefined;

  constructor(context: IteratorContext, fn: NodeFunction, check: SpecCheck | undefined) {
    super(context, fn, check);
    this.#check = check;
    const fuses = context.uses("mapFusion") && this.input instanceof MapIterator;
    this.#below = fuses ? this.input : undefined;
  }

  override nextBlock(into: unknown[], count: number): number {
    if (this.#below !== undefined && this.block.isEmpty && !this.hasOutcome) {
      const given = this.#fusedBlock(this.#below, into, this.call.plainRun(count));
      if (given !== undefined) return this.disposed ? NO_BLOCK : given;
    }
    return super.nextBlock(into, count);
  }

  /**
   * Like `nextBlock()`: calls both functions on one element after the other, without a block in
   * between. `undefined` where one of them has to be timed, or the element below measured.
   */
  #fusedBlock(below: MapIterator, into: unknown[], count: number): number | undefined {
    const run = Math.min(below.call.plainRun(count), below.stats.unmeasuredRun);
    if (run <= 0 || below.hasOutcome) return undefined;
    const { block } = below;
    if (block.isEmpty) {
      const read = block.read(below.input, run);
      if (read <= 0) return read;
    }
    block.stop = Math.min(block.end, block.at + run);
    return this.#callBoth(below, block, into);
  }

  /** See `callBlock()`, which this does for two operators. */
  #callBoth(below: MapIterator, block: InputBlock, into: unknown[]): number {
    const [lower, upper] = [below.call, this.call];
    const { fn: lowerFn, extra: lowerExtra } = lower;
    const { fn: upperFn, extra: upperExtra } = upper;
    const { items, at } = block;
    const lowerAtStart = lower.index - at;
    const upperAtStart = upper.index - at;
    let i = at;
    let passed = 0;
    let isUpper = false;
    try {
      for (; i < block.stop; i++) {
        isUpper = false;
        lower.index = lowerAtStart + i + 1;
        const element = lowerFn(items[i], lowerExtra);
        if (below.#leaves(element)) break;
        isUpper = true;
        passed++;
        upper.index = upperAtStart + i + 1;
        const result = upperFn(element, upperExtra);
        if (this.#leaves(result)) break;
        into[i - at] = result;
      }
    } catch (error) {
      const failing = isUpper ? this : below;
      failing.leave({ failed: true, value: failing.call.failure(error) });
    }
    block.at = Math.min(lower.index - lowerAtStart, block.end);
    below.stats.gaveUnmeasured(passed);
    this.stats.gaveBlock(into, i - at);
    return i - at;
  }

  /** Whether it has left a result for `next()`, because it is a promise. Throws for an invalid one. */
  #leaves(result: unknown): boolean {
    // The type is also checked here, because a call per number is measurably slow.
    if (typeof result === "number" && this.#check?.fitsNumber(result) !== false) return false;
    if (!isThenable(result)) {
      this.#check?.checked(result);
      return false;
    }
    this.leave({ failed: false, value: this.#settled(this.call.settle(result)) });
    return true;
  }

  override next(): Pulled<unknown> {
    const outcome = this.takeOutcome();
    if (outcome !== undefined) {
      if (outcome.failed) throw outcome.value;
      return outcome.value;
    }
    const element = this.pull();
    if (element instanceof Promise) return this.#later(element);
    return element === END ? END : this.#call(element);
  }

  #call(element: unknown): Pulled<unknown> {
    const result = this.call.one(element);
    return result instanceof Promise ? this.#settled(result) : this.stats.gave(result);
  }

  async #settled(pending: Promise<unknown>): Promise<unknown> {
    return this.stats.gave(await pending);
  }

  protected override callBlock(block: InputBlock, into: unknown[]): number {
    const { call } = this;
    const { fn, extra } = call;
    const { items, at } = block;
    const indexAtStart = call.index - at;
    let i = at;
    try {
      for (; i < block.stop; i++) {
        call.index = indexAtStart + i + 1;
        const result = fn(items[i], extra);
        if (this.#leaves(result)) break;
        into[i - at] = result;
      }
    } catch (error) {
      this.leave({ failed: true, value: call.failure(error) });
    }
    block.at = Math.min(call.index - indexAtStart, block.end);
    this.stats.gaveBlock(into, i - at);
    return i - at;
  }

  override token(): Token | undefined {
    return tokenOfCall(this.call.index - 1, this.inputToken());
  }

  override again(token: Token): unknown {
    return againByCall(this.call, this.input, token);
  }

  async #later(pending: Promise<unknown>): Promise<unknown> {
    const element = await this.arrival(pending);
    return element === END || this.disposed ? END : this.#call(element);
  }
}

class ParallelMapIterator extends ParallelCalls {
  override token(): Token | undefined {
    return tokenOfCall(this.given.index, this.given.token);
  }

  override again(token: Token): unknown {
    return againByCall(this.call, this.input, token);
  }

  protected override conclude(_element: unknown, result: unknown): unknown {
    return result;
  }
}
