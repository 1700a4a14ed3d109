/** `map`: applies a function to every element, one at a time or several at once. */
import type { Captures } from "../../udf/user_function.ts";
import type { FunctionOptions } from "../../dataset_types.ts";
import { isThenable, NodeFunction } from "../../udf/call.ts";
import { checkOptionalBoolean, optionsOf } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { type ElementIterator, END, type Pulled, type Token } from "../../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../../node.ts";
import type { LoopKind } from "../../optimizer/fused_loop.ts";
import { AUTOTUNE, checkParallelCalls } from "../../parallelism.ts";
import { checkSpec, type ElementSpec } from "../../elements/spec.ts";
import { SpecCheck } from "../../elements/spec_check.ts";
import { BatchedCall, type BatchedRows } from "../../optimizer/batched_call.ts";
import { againByCall, CallingIterator, tokenOfCall } from "./calling.ts";
import { ParallelCalls } from "./parallel_calls.ts";
import { OneToOneNode } from "../unary.ts";

/** Options of `map`. */
export interface MapOptions<C extends Captures> extends FunctionOptions<C> {
  /** At most this many calls at once, or `AUTOTUNE`. Default 1, and 32 for `python(…)`. */
  readonly numParallelCalls?: number | undefined;
  /** Whether parallel calls keep the order of elements. Default: as `withOptions` says (true). */
  readonly deterministic?: boolean | undefined;
  /**
   * The spec of the function's results, for `elementSpec` and the dtype of batched numbers. A result
   * of another dtype, shape or structure fails with `invalid_argument`. A part that is `undefined`,
   * and a length of null, accept anything. Default: unknown.
   */
  readonly spec?: ElementSpec;
  /**
   * Declares that the function, called with a batch of elements, returns the batch of its results,
   * as `cast()` does. Before `batch`, elements of tensors are then passed to it many at a time. If
   * that fails, or the function uses `index` or `random`, it is called for each. Default false.
   */
  readonly batchable?: boolean | undefined;
}

/** The options without the captures, which belong to the function. */
export type MapAttributes = Omit<MapOptions<Captures>, "captures">;

export class MapNode extends OneToOneNode {
  static readonly options = optionsOf<MapOptions<Captures>>("map", {
    numParallelCalls: true,
    deterministic: true,
    spec: true,
    batchable: true,
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
    const { numParallelCalls = fn.callsByDefault } = options;
    this.options = {
      numParallelCalls: checkParallelCalls("map", numParallelCalls),
      deterministic: checkOptionalBoolean("map", "deterministic", options.deterministic),
      spec: checkSpec("map", options.spec),
      batchable: checkOptionalBoolean("map", "batchable", options.batchable),
    };
    this.#check = SpecCheck.of(this.options.spec);
  }

  override get attributes(): Attributes {
    const { batchable, ...options } = this.options;
    return { fn: this.fn, ...options, ...(batchable ? { batchable } : {}) };
  }

  override get elementSpec(): ElementSpec {
    return this.options.spec;
  }

  override tokenAt(index: number): Token | undefined {
    return tokenOfCall(index, this.input.tokenAt(index));
  }

  override get loopKind(): LoopKind | undefined {
    return this.options.numParallelCalls === undefined ? "map" : undefined;
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    const { numParallelCalls, deterministic = context.deterministic } = this.options;
    if (numParallelCalls === undefined) {
      return new MapIterator(context, this.fn, this.#check, this.options.batchable);
    }
    return new ParallelMapIterator(context, this.fn, numParallelCalls, deterministic, this.#check);
  }
}

registerNode("map", {
  fromWire: (a, [input]) => new MapNode(input!, NodeFunction.among(a, "fn"), a as MapAttributes),
});

export class MapIterator extends CallingIterator {
  override readonly kind = "map";
  /** Rule `mapVectorization`: present if the function is batchable. */
  readonly #batched: BatchedCall | undefined;

  constructor(
    context: IteratorContext,
    fn: NodeFunction,
    check: SpecCheck | undefined,
    isBatchable = false,
  ) {
    super(context, fn, check);
    this.#batched = isBatchable ? new BatchedCall(this.call, check) : undefined;
  }

  /** Whether the function may be called with a batch. */
  get isBatchable(): boolean {
    return this.#batched?.isOff === false;
  }

  /**
   * Calls a batchable function once, on at most `count` of the next elements. Undefined if the function
   * has to be called for each element: then call `next()` or `nextBlock()`.
   */
  nextRows(count: number): BatchedRows | undefined {
    const { block } = this;
    const batched = this.#batched;
    if (batched === undefined || this.call.plainRun(1) <= 0 || this.hasFirst) return undefined;
    if (block.isEmpty && block.read(this.input, count) <= 0) return undefined;
    const elements = block.rest.slice(0, count);
    const rows = this.call.timed(() => batched.rowsOf(elements));
    if (rows === undefined || this.disposed) return undefined;
    block.at += elements.length;
    this.call.resume(this.call.index + elements.length);
    this.stats.gaveRows(rows.batch, rows.count);
    return rows;
  }

  override deferResult(_element: unknown, result: unknown): boolean {
    if (!isThenable(result)) {
      this.check?.checked(result);
      return false;
    }
    this.defer({ failed: false, value: this.#settled(this.call.settle(result)) });
    return true;
  }

  protected override conclude(_element: unknown, result: unknown): unknown {
    return this.stats.gave(result);
  }

  protected override widen(): ParallelCalls {
    return new ParallelMapIterator(
      ...[this.context, this.fn, AUTOTUNE, true, this.check, this.input] as const,
    );
  }

  override next(): Pulled<unknown> {
    if (this.hasFirst) return this.takeFirst();
    const element = this.pull();
    if (element instanceof Promise) return this.#later(element);
    return element === END ? END : this.#call(element);
  }

  #call(element: unknown): Pulled<unknown> {
    const result = this.call.one(element);
    if (!(result instanceof Promise)) return this.stats.gave(result);
    this.waits();
    return this.#settled(result);
  }

  async #settled(pending: Promise<unknown>): Promise<unknown> {
    return this.stats.gave(await pending);
  }

  protected override tokenOf(index: number, inputToken: Token | undefined): Token | undefined {
    return tokenOfCall(index, inputToken);
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
