/**
 * Calling user functions: the operators' side of `map(fn)`, `filter(fn)`, … A call adds the last
 * argument, times what it samples, and says where a function failed.
 */
import { LeatError } from "../core/error.ts";
import type { RandomStream } from "../core/philox.ts";
import { tensor } from "../core/tensor.ts";
import { isPlainObject } from "../core/tree.ts";
import type { IteratorContext } from "./context.ts";
import type { ImageCodec } from "./host.ts";
import { type Attributes, facade } from "./node.ts";
import type { OperatorStats } from "./stats.ts";
import {
  type AnyFunction,
  type BoundFunction,
  type Captures,
  type LoadedFunction,
  loadFunction,
  ModuleFunction,
  type UserFunction,
} from "./udf/user_function.ts";

/** The last argument of every user function; the named captures stand beside these. */
export interface FunctionExtra {
  /** The `Dataset` class, for functions that make datasets. */
  readonly Dataset: unknown;
  readonly tensor: typeof tensor;
  /** Luck of this element: the same wherever and whenever it is processed with the same seed. */
  readonly random: RandomStream;
  /** How many elements this operator was given before this one, in this iteration. */
  readonly index: number;
  /** Image decoding by the host. */
  readonly image: ImageCodec;
}

/** Names that captures cannot have, because `FunctionExtra` has them. */
const RESERVED = ["Dataset", "tensor", "random", "index", "image"];

/** A user function as an attribute of a node. */
export class NodeFunction implements BoundFunction {
  readonly fn: UserFunction;
  readonly captures?: Captures;

  /** `operator` and `argument` are what an error names. */
  constructor(operator: string, argument: string, fn: unknown, captures?: unknown) {
    if (typeof fn !== "function" && !(fn instanceof ModuleFunction)) {
      throw new LeatError(
        "invalid_argument",
        `${operator}: ${argument} must be a function or udf(...), got ${typeof fn}`,
      );
    }
    this.fn = fn as UserFunction;
    if (captures === undefined) return;
    if (!isPlainObject(captures)) {
      throw new LeatError(
        "invalid_argument",
        `${operator}: captures must be a plain object of named values, got ${typeof captures}`,
      );
    }
    const reserved = RESERVED.find((name) => name in captures);
    if (reserved !== undefined) {
      throw new LeatError(
        "invalid_argument",
        `${operator}: a capture cannot be called "${reserved}", which every function is given; ` +
          `rename it`,
      );
    }
    this.captures = captures;
  }

  /** The function among attributes that came from elsewhere. */
  static among(attributes: Attributes, name: string): NodeFunction {
    const found = attributes[name];
    if (found instanceof NodeFunction) return found;
    throw new LeatError("invalid_argument", `A serialised operator has no function "${name}".`);
  }
}

/** The last argument of the calls of one function. */
class Extra implements FunctionExtra {
  declare readonly Dataset: unknown;
  readonly tensor = tensor;
  readonly image: ImageCodec;
  readonly #call: Call;
  /** Fixed for a call that others overlap; otherwise it moves along with the calls. */
  readonly #index: number | undefined;
  #random: RandomStream | undefined;
  #randomIndex = -1;

  constructor(call: Call, image: ImageCodec, captures: Captures | undefined, index?: number) {
    this.#call = call;
    this.image = image;
    this.#index = index;
    if (captures !== undefined) Object.assign(this, captures);
  }

  get index(): number {
    return this.#index ?? this.#call.index - 1;
  }

  get random(): RandomStream {
    const { index } = this;
    if (this.#random === undefined || this.#randomIndex !== index) {
      this.#randomIndex = index;
      this.#random = this.#call.luckOf(index);
    }
    return this.#random;
  }
}

// A getter, since the class is not known yet while its module and this one are being loaded.
Object.defineProperty(Extra.prototype, "Dataset", { get: () => facade().Dataset });

/** Of short calls one in so many is timed, since reading the clock takes longer than some of them. */
function callsPerSample(tookMs: number): number {
  if (tookMs > 0.1) return 1;
  return tookMs > 0.01 ? 32 : 1024;
}

/** How many arguments a function takes before the last. */
type Arity = 0 | 1 | 2;

function invoke(
  fn: AnyFunction,
  arity: Arity,
  first: unknown,
  second: unknown,
  extra: Extra,
): unknown {
  if (arity === 1) return fn(first, extra);
  return arity === 2 ? fn(first, second, extra) : fn(extra);
}

/**
 * One user function, bound to the iterator that calls it.
 *
 * `map` and `filter` call `fn(element, extra)` themselves for whole blocks of elements, each in one
 * place of its own, because the engine can only make a call fast where it sees few functions. They
 * may for as many calls as `plainRun()` says, and leave the rest to `one()`.
 */
export class Call {
  /** How many calls were begun. */
  index = 0;
  #failures = 0;
  /** Set by the first call, which is never plain. */
  fn!: AnyFunction;
  extra!: Extra;
  readonly #bound: BoundFunction;
  readonly #context: IteratorContext;
  readonly #stats: OperatorStats;
  readonly #overlapping: boolean;
  #captures: Captures | undefined;
  #loaded = false;
  #stream: RandomStream | undefined;
  /** The call that is not plain: because it is timed, or because the function is not loaded yet. */
  #specialAt = 0;
  /** How many calls the timed one stands for. */
  #standsFor = 1;

  /** `overlapping`: calls may begin before earlier ones have settled. */
  constructor(fn: BoundFunction, context: IteratorContext, overlapping = false) {
    this.#bound = fn;
    this.#context = context;
    this.#stats = context.stats;
    this.#overlapping = overlapping;
  }

  /** How many calls did not fail. */
  get succeeded(): number {
    return this.index - this.#failures;
  }

  /** How many of the next `count` calls may be made directly. Each sets `index` one further first. */
  plainRun(count: number): number {
    return Math.min(count, this.#specialAt - this.index);
  }

  /** Calls the function on one element. Throws or rejects with a `LeatError` naming the element. */
  one(element: unknown): unknown {
    this.index++;
    return this.#run(1, element, undefined);
  }

  /** Calls a function of two arguments. */
  two(first: unknown, second: unknown): unknown {
    this.index++;
    return this.#run(2, first, second);
  }

  /** Calls a function of no arguments. */
  none(): unknown {
    this.index++;
    return this.#run(0, undefined, undefined);
  }

  /** The luck of the call with this index. */
  luckOf(index: number): RandomStream {
    this.#stream ??= this.#context.randomStream();
    return this.#stream.fork(index);
  }

  /** The luck of what the function makes of the element it was last called on. */
  nestedLuck(): () => RandomStream {
    const index = this.index - 1;
    return () => this.luckOf(index).fork("nested");
  }

  /** The error of the call with this index, which names it. */
  failure(error: unknown, index = this.index - 1): LeatError {
    this.#failures++;
    const { code, message } = LeatError.from(error);
    const { operator, number } = this.#stats;
    return new LeatError(
      code,
      `${operator} (operator ${number}): the function failed at element ${index}: ${message}`,
      { cause: error },
    );
  }

  /** Waits for what a call returned. */
  async settle(result: unknown, index = this.index - 1): Promise<unknown> {
    try {
      return await result;
    } catch (error) {
      throw this.failure(error, index);
    }
  }

  #run(arity: Arity, first: unknown, second: unknown): unknown {
    const index = this.index - 1;
    if (!this.#loaded) {
      const loaded = loadFunction(this.#bound, this.#context.host);
      if (loaded instanceof Promise) return this.#runLater(loaded, arity, first, second, index);
      this.#accept(loaded);
    }
    const extra = this.#overlapping ? this.#makeExtra(index) : this.extra;
    const startedAtMs = index >= this.#specialAt ? this.#context.host.nowMs() : undefined;
    let result: unknown;
    try {
      result = invoke(this.fn, arity, first, second, extra);
    } catch (error) {
      throw this.failure(error, index);
    } finally {
      if (startedAtMs !== undefined) this.#noteTime(startedAtMs, index);
    }
    return result instanceof Promise ? this.settle(result, index) : result;
  }

  #noteTime(startedAtMs: number, index: number): void {
    const tookMs = this.#context.host.nowMs() - startedAtMs;
    this.#stats.selfMs += tookMs * this.#standsFor;
    this.#standsFor = callsPerSample(tookMs);
    this.#specialAt = index + this.#standsFor;
  }

  #accept({ fn, captures }: LoadedFunction): void {
    this.#loaded = true;
    this.fn = fn;
    this.#captures = captures;
    this.extra = this.#makeExtra();
  }

  async #runLater(
    loading: Promise<LoadedFunction>,
    arity: Arity,
    first: unknown,
    second: unknown,
    index: number,
  ): Promise<unknown> {
    this.#specialAt = index + 1;
    try {
      const loaded = await loading;
      if (!this.#loaded) this.#accept(loaded);
      return await invoke(this.fn, arity, first, second, this.#makeExtra(index));
    } catch (error) {
      throw this.failure(error, index);
    }
  }

  #makeExtra(index?: number): Extra {
    return new Extra(this, this.#context.host.images, this.#captures, index);
  }
}
