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

/** The last argument, reused from call to call and moved along by `at`. */
class Extra implements FunctionExtra {
  declare readonly Dataset: unknown;
  readonly tensor = tensor;
  readonly image: ImageCodec;
  index = 0;
  readonly #luck: () => RandomStream;
  #random: RandomStream | undefined;

  constructor(image: ImageCodec, luck: () => RandomStream, captures: Captures | undefined) {
    this.image = image;
    this.#luck = luck;
    if (captures !== undefined) Object.assign(this, captures);
  }

  get random(): RandomStream {
    return this.#random ??= this.#luck().fork(this.index);
  }

  at(index: number): this {
    this.index = index;
    this.#random = undefined;
    return this;
  }
}

// A getter, since the class is not known yet while its module and this one are being loaded.
Object.defineProperty(Extra.prototype, "Dataset", { get: () => facade().Dataset });

/** Calls shorter than this are timed one in `SAMPLE_EVERY`. */
const SHORT_CALL_MS = 0.02;
const SAMPLE_EVERY = 64;

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

/** One user function, bound to the iterator that calls it. */
export class Call {
  /** The index of the next element; moves on with every call. */
  index = 0;
  readonly #bound: BoundFunction;
  readonly #context: IteratorContext;
  readonly #stats: OperatorStats;
  readonly #overlapping: boolean;
  #fn: AnyFunction | undefined;
  #captures: Captures | undefined;
  #extra: Extra;
  #stream: RandomStream | undefined;
  #untilTimed = 1;
  #timedFor = 1;

  /** `overlapping`: calls may begin before earlier ones have settled. */
  constructor(fn: BoundFunction, context: IteratorContext, overlapping = false) {
    this.#bound = fn;
    this.#context = context;
    this.#stats = context.stats;
    this.#overlapping = overlapping;
    const loaded = loadFunction(fn, context.host);
    if (!(loaded instanceof Promise)) this.#fn = loaded.fn;
    this.#captures = fn.captures;
    this.#extra = this.#makeExtra();
  }

  /** Calls the function on one element. Throws or rejects with a `LeatError` naming the element. */
  one(element: unknown): unknown {
    return this.#run(1, element, undefined);
  }

  /** Calls a function of two arguments. */
  two(first: unknown, second: unknown): unknown {
    return this.#run(2, first, second);
  }

  /** Calls a function of no arguments. */
  none(): unknown {
    return this.#run(0, undefined, undefined);
  }

  /** The luck of what the function makes of the element it was last called on. */
  nestedLuck(): () => RandomStream {
    const index = this.index - 1;
    return () => this.#luck().fork(index).fork("nested");
  }

  #run(arity: Arity, first: unknown, second: unknown): unknown {
    const index = this.index++;
    const fn = this.#fn;
    if (fn === undefined) return this.#loadAndRun(arity, first, second, index);
    const extra = (this.#overlapping ? this.#makeExtra() : this.#extra).at(index);
    if (--this.#untilTimed === 0) return this.#timed(fn, arity, first, second, extra);
    try {
      const result = invoke(fn, arity, first, second, extra);
      return result instanceof Promise ? this.#settle(result, index) : result;
    } catch (error) {
      throw this.#failure(error, index);
    }
  }

  #timed(fn: AnyFunction, arity: Arity, first: unknown, second: unknown, extra: Extra): unknown {
    const { host } = this.#context;
    const index = extra.index;
    const startedAtMs = host.nowMs();
    let result: unknown;
    try {
      result = invoke(fn, arity, first, second, extra);
    } catch (error) {
      throw this.#failure(error, index);
    } finally {
      const tookMs = host.nowMs() - startedAtMs;
      this.#stats.selfMs += tookMs * this.#timedFor;
      this.#untilTimed = this.#timedFor = tookMs < SHORT_CALL_MS ? SAMPLE_EVERY : 1;
    }
    return result instanceof Promise ? this.#settle(result, index) : result;
  }

  async #settle(result: Promise<unknown>, index: number): Promise<unknown> {
    try {
      return await result;
    } catch (error) {
      throw this.#failure(error, index);
    }
  }

  async #loadAndRun(
    arity: Arity,
    first: unknown,
    second: unknown,
    index: number,
  ): Promise<unknown> {
    const loaded = await loadFunction(this.#bound, this.#context.host);
    if (this.#fn === undefined) {
      this.#fn = loaded.fn;
      this.#captures = loaded.captures;
      this.#extra = this.#makeExtra();
    }
    const extra = this.#makeExtra().at(index);
    try {
      return await invoke(this.#fn, arity, first, second, extra);
    } catch (error) {
      throw this.#failure(error, index);
    }
  }

  #makeExtra(): Extra {
    return new Extra(this.#context.host.images, () => this.#luck(), this.#captures);
  }

  #luck(): RandomStream {
    return this.#stream ??= this.#context.randomStream();
  }

  #failure(error: unknown, index: number): LeatError {
    const cause = LeatError.from(error);
    const { operator, number } = this.#stats;
    return new LeatError(
      cause.code,
      `${operator} (operator ${number}): the function failed at element ${index}: ${cause.message}`,
      { cause: error },
    );
  }
}
