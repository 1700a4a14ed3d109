/**
 * Calls user functions of operators such as `map(fn)` and `filter(fn)`. A call adds the last
 * argument, times samples, and reports where a function failed.
 */
import { LeatError } from "../../core/error.ts";
import type { RandomStream } from "../../core/philox.ts";
import type { tensor } from "../../core/tensor.ts";
import type { TensorOperations } from "../../core/tensor_operations.ts";
import { isPlainObject } from "../../core/tree.ts";
import type { parseExample } from "../formats/tfrecord/example.ts";
import type { encodeExample } from "../formats/tfrecord/example_encoding.ts";
import type { AudioCodec, Host } from "../host.ts";
import type { ImageTools } from "../media/image.ts";
import { didYouMean, show } from "../check.ts";
import type { Attributes } from "../node.ts";
import { ReadingFailure } from "../iterators/reading_failure.ts";
import type { SpecCheck } from "../elements/spec_check.ts";
import type { OperatorMeter } from "../iterators/stats.ts";
import { Stopwatch } from "../iterators/stopwatch.ts";
import { GIVEN_NAMES, mayUse, requiredNames } from "./captured_names.ts";
import { type Arity, Extra, withToolbox } from "./extra.ts";
import { SourceFunction } from "./source_function.ts";
import type { BatchRows } from "../elements/batch_rows.ts";
import { returnsImages } from "./returned_images.ts";
import { PYTHON_CALLS, PythonFunction } from "./python_function.ts";
import {
  type AnyFunction,
  type BoundFunction,
  type Captures,
  dependsOnArguments,
  functionText,
  isUserFunction,
  type LoadedFunction,
  loadFunction,
  serializeFunction,
  type UserFunction,
} from "./user_function.ts";
import type { WireFunction } from "./wire_function.ts";

/** The last argument of every user function; it also holds the named captures. */
export interface FunctionExtra {
  /** The `Dataset` class, for functions that make datasets. */
  readonly Dataset: unknown;
  /** Makes a tensor, as `tensor()` of the module does. */
  readonly tensor: typeof tensor;
  /**
   * Random numbers for this element. They depend on the seed, the operator, the epoch and `index`, and
   * not on the host or on calls at the same time. On a service they also depend on the split under
   * DETERMINISTIC and with `offload`, on the worker's share under FILE, and under DYNAMIC on the task,
   * so that there they differ from run to run.
   */
  readonly random: RandomStream;
  /**
   * How many elements this operator was given before this one, in this iteration; on a service, in this
   * worker's task, or in the split under DETERMINISTIC and with `offload`. If an operator has several
   * functions, each counts its own calls.
   */
  readonly index: number;
  /** Decodes images, and transforms them. */
  readonly image: ImageTools;
  /** Operations on tensors. */
  readonly tensors: TensorOperations;
  /** Decodes sound. */
  readonly audio: AudioCodec;
  /** Reads and writes serialised `tf.train.Example`s. */
  readonly example: {
    /** See {@linkcode parseExample}. */
    readonly parse: typeof parseExample;
    /** See {@linkcode encodeExample}. */
    readonly encode: typeof encodeExample;
  };
}

/** A user function as an attribute of a node. */
export class NodeFunction implements BoundFunction {
  readonly fn: UserFunction;
  readonly captures?: Captures;
  #arity: Arity;

  /**
   * Errors name `operator` and `argument`. `arity`: how many arguments the function takes before the
   * last. `given`: the names in the last argument that are no captures. Captures cannot have them, nor
   * any of `GIVEN_NAMES`.
   */
  constructor(
    operator: string,
    argument: string,
    fn: unknown,
    captures?: unknown,
    { arity = 1, given = GIVEN_NAMES }: { arity?: Arity; given?: readonly string[] } = {},
  ) {
    if (!isUserFunction(fn)) {
      throw new LeatError(
        "invalid_argument",
        `${operator}: ${argument} must be a function, udf(...) or python(...), got ${typeof fn}`,
      );
    }
    this.fn = fn;
    this.#arity = arity;
    if (captures !== undefined && !isPlainObject(captures)) {
      throw new LeatError(
        "invalid_argument",
        `${operator}: captures must be a plain object of named values, got ${typeof captures}`,
      );
    }
    if (typeof fn === "function") {
      requireCaptures(`${operator}: ${argument}`, String(fn), arity, captures ?? {}, given);
    }
    if (captures === undefined) return;
    // No function's captures have these names: a serialised one does not say what it is given.
    const reserved = [...given, ...GIVEN_NAMES].find((name) => name in captures);
    if (reserved !== undefined) {
      throw new LeatError(
        "invalid_argument",
        `${operator}: a capture cannot be called "${reserved}", a name that Leat gives to ` +
          `functions; rename it`,
      );
    }
    this.captures = captures;
  }

  /** Whether the function may draw random numbers, or make a dataset that does. */
  get mayDraw(): boolean {
    const { fn } = this;
    const hasText = typeof fn === "function" || fn instanceof SourceFunction;
    return !hasText || mayUse(["random", "Dataset"], String(fn), this.#arity);
  }

  /** Whether a repetition may give other results for the same elements, as far as the source shows. */
  get mayVary(): boolean {
    return this.mayDraw || !dependsOnArguments(this);
  }

  /**
   * Whether other threads may call the function. False for Python: processes call those functions.
   */
  get isSendable(): boolean {
    return !(this.fn instanceof PythonFunction);
  }

  /**
   * The function and its captures, as they are now, as plain data.
   *
   * @throws {LeatError} with the reason why it cannot be serialised, and what to do about it.
   */
  serialize(): WireFunction {
    return serializeFunction(this.fn, this.captures, this.#arity);
  }

  /** How many calls are in flight if `numParallelCalls` is left out; undefined for one at a time. */
  get callsByDefault(): number | undefined {
    return this.fn instanceof PythonFunction ? PYTHON_CALLS : undefined;
  }

  /**
   * A function among received attributes. `arity`: as for the constructor; it is not sent.
   *
   * @throws {LeatError} `invalid_argument` if the attribute is no function.
   */
  static among(attributes: Attributes, name: string, arity: Arity = 1): NodeFunction {
    const found = attributes[name];
    if (found instanceof NodeFunction) {
      found.#arity = arity;
      return found;
    }
    throw new LeatError("invalid_argument", `A serialised operator has no function "${name}".`);
  }
}

/**
 * Refuses a function that destructures a name which nothing gives it: the name would be `undefined`, and
 * a calculation with it NaN. `where` begins the message.
 */
function requireCaptures(
  where: string,
  source: string,
  arity: Arity,
  captures: Captures,
  given: readonly string[],
): void {
  const missing = requiredNames(source, arity)
    .find((name) => !given.includes(name) && !(name in captures));
  if (missing === undefined) return;
  const names = Object.keys(captures);
  const known = names.length === 0 ? "there are no captures" : `captures has ${names.join(", ")}`;
  const hint = didYouMean(missing, [...names, ...given]) ||
    `; pass it as { captures: { ${missing} } }`;
  throw new LeatError(
    "invalid_argument",
    `${where} takes ${show(missing)} from its last argument, but ${known}${hint}`,
  );
}

/** Whether a function's result must be awaited: a promise of any library or realm. */
export function isThenable(result: unknown): result is PromiseLike<unknown> {
  return typeof result === "object" && result !== null &&
    typeof (result as { then?: unknown }).then === "function";
}

function disposed(): LeatError {
  return new LeatError("cancelled", "the iterator was disposed");
}

export interface CallContext {
  readonly host: Host;
  readonly stats: OperatorMeter;
  /** The split and the task that the iteration runs; 0 for none. Left out: unknown on this thread. */
  readonly randomState?: { readonly split: number; readonly task?: number | undefined };
  /** Whether the iteration reads splits. */
  readonly readsSplits?: boolean;
  /** What the iteration knows of captures: see `loadFunction`. Left out: nothing. */
  readonly loadedCaptures?: WeakSet<object>;
  callStream(): RandomStream;
}

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
 * `map` and `filter` call `fn(element, extra)` directly for blocks of elements, each operator at its own
 * call site, because the engine optimises a call site only if it sees few functions. They may do so
 * for as many calls as `plainRun()` allows, and use `one()` for the rest.
 */
export class Call {
  /** How many calls were begun. */
  index = 0;
  /** The memory to which images may be decoded, if the results are rows of batches. */
  rows: BatchRows | undefined;
  /** Set by the first call, which is never a direct one. */
  fn!: AnyFunction;
  extra!: Extra;
  readonly #bound: BoundFunction;
  readonly #context: CallContext;
  readonly #stats: OperatorMeter;
  /** Times some calls. Timed calls are never direct, nor is the first, which loads the function. */
  readonly #watch: Stopwatch;
  readonly #repeatWatch: Stopwatch;
  readonly #overlapping: boolean;
  readonly #name: string | undefined;
  readonly #isFurther: boolean;
  /** Checks the results; undefined if the caller does, or nothing is declared. */
  readonly #check: SpecCheck | undefined;
  #captures: Captures | undefined;
  #loaded = false;
  #stopped = false;
  #stream: RandomStream | undefined;

  /**
   * `overlapping`: whether calls may begin before earlier ones have settled. `check`: checks results
   * that are elements. `name`: names the function in errors, if the operator has several. `isFurther`:
   * whether it is not the first of them. Then its random numbers are its own.
   */
  constructor(
    fn: BoundFunction,
    context: CallContext,
    { overlapping = false, check, name, isFurther = false }: {
      overlapping?: boolean;
      check?: SpecCheck;
      name?: string;
      isFurther?: boolean;
    } = {},
  ) {
    this.#bound = fn;
    this.#context = context;
    this.#stats = context.stats;
    this.#watch = new Stopwatch(context.host, context.stats);
    this.#repeatWatch = new Stopwatch(context.host, context.stats);
    this.#overlapping = overlapping;
    this.#name = name;
    this.#isFurther = isFurther;
    this.#check = check;
  }

  /** The call of a function of an operator that has another function before it. */
  static further(fn: BoundFunction, name: string, context: CallContext): Call {
    return new Call(fn, context, { name, isFurther: true });
  }

  /** How many of the next `count` calls may be made directly. The caller increments `index` before each. */
  plainRun(count: number): number {
    return Math.min(count, this.#watch.dueAt - this.index);
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

  /** Repeats the call with this index: with the same random state, and without counting it. */
  again(index: number, element: unknown): unknown {
    return this.#repeat(index, 1, element, undefined);
  }

  /** Like `again()`, for a function of two arguments. */
  againTwo(index: number, first: unknown, second: unknown): unknown {
    return this.#repeat(index, 2, first, second);
  }

  /** Loads the function before its first call; `arity` counts its arguments before the last. */
  async load(arity: Arity): Promise<void> {
    if (!this.#loaded) this.#accept(await this.#load(arity), arity);
  }

  /** The result of the call with this index, which another thread has made. Throws if it is invalid. */
  checked(result: unknown, index: number): unknown {
    try {
      return this.#checked(result);
    } catch (error) {
      throw this.failure(error, index);
    }
  }

  /** Continues as if `index` calls had begun before. */
  resume(index: number): void {
    this.index = index;
  }

  /** Cancels calls that wait for the function to be loaded. Repeated calls still work. */
  stop(): void {
    this.#stopped = true;
  }

  /** Runs `calls`, which makes direct calls, and counts its time. */
  timed<T>(calls: () => T): T {
    const startedAtMs = this.#context.host.nowMs();
    try {
      return calls();
    } finally {
      this.#stats.spent(this.#context.host.nowMs() - startedAtMs);
    }
  }

  randomStateOf(index: number): RandomStream {
    return (this.#stream ??= this.#openStream()).fork(index);
  }

  #openStream(): RandomStream {
    const stream = this.#context.callStream();
    return this.#isFurther ? stream.fork(this.#name!) : stream;
  }

  /** The random stream for datasets made by the call with this index. */
  nestedRandomState(index = this.index - 1): () => RandomStream {
    return () => this.randomStateOf(index).fork("nested");
  }

  /** The error of the call with this index, which the message names. */
  failure(error: unknown, index = this.index - 1): LeatError {
    if (error instanceof ReadingFailure) return error;
    const { code, message } = LeatError.from(error);
    // The message of a missing permission must say which function needs it.
    const which = code === "permission_denied" ? ` (${functionText(this.#bound.fn)})` : "";
    return this.#stats.failed(
      new LeatError(
        code,
        `${this.#placeOf(index)}${which}: ${message}`,
        { cause: error },
      ),
    );
  }

  #placeOf(index: number): string {
    const { operator, number } = this.#stats;
    const [among, of] = this.#counted();
    const where = number < 0 ? operator : `${operator} (operator ${number}${among})`;
    const at = this.#isFurther ? `its call ${index}` : `element ${index}${of}`;
    return `${where}: ${this.#name ?? "the function"} failed at ${at}`;
  }

  /** What the numbers of the operator and the element count, if not those of the user's pipeline. */
  #counted(): readonly [among: string, of: string] {
    const { randomState: { split, task = 0 } = { split: 0 }, readsSplits = false } = this.#context;
    if (split !== 0) return [" of those that run on each split", " of its split"];
    if (task === 0 && !readsSplits) return ["", ""];
    return [" of those on the worker", " of those that the worker reads"];
  }

  /** Awaits and checks what call `index` returned. */
  async settle(result: unknown, index = this.index - 1): Promise<unknown> {
    try {
      return this.#checked(await result);
    } catch (error) {
      throw this.failure(error, index);
    }
  }

  #run(arity: Arity, first: unknown, second: unknown, index = this.index - 1): unknown {
    let startedAtMs: number | undefined;
    try {
      if (!this.#loaded) {
        const loaded = this.#load(arity);
        if (loaded instanceof Promise) return this.#runLater(loaded, arity, first, second, index);
        this.#accept(loaded, arity);
      }
      const extra = this.#overlapping ? this.#makeExtra(index) : this.extra;
      if (index >= this.#watch.dueAt) startedAtMs = this.#context.host.nowMs();
      this.rows?.beginCall();
      const result = invoke(this.fn, arity, first, second, extra);
      if (!isThenable(result)) return this.#checked(result);
      this.rows?.endCall();
      return this.settle(result, index);
    } catch (error) {
      throw this.failure(error, index);
    } finally {
      if (startedAtMs !== undefined) this.#watch.note(startedAtMs, index);
    }
  }

  #load(arity: Arity): LoadedFunction | Promise<LoadedFunction> {
    const { host, loadedCaptures } = this.#context;
    const loaded = loadFunction(this.#bound, host, loadedCaptures);
    return loaded instanceof Promise
      ? loaded.then((loaded) => withToolbox(loaded, arity))
      : withToolbox(loaded, arity);
  }

  #accept({ fn, captures }: LoadedFunction, arity: Arity): void {
    this.#loaded = true;
    if (this.rows !== undefined) {
      this.rows.areUnseen = returnsImages(Function.prototype.toString.call(fn), arity);
    }
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
    this.#watch.dueAt = index + 1;
    try {
      const loaded = await loading;
      if (!this.#loaded) this.#accept(loaded, arity);
      if (this.#stopped) throw disposed();
      this.rows?.beginCall();
      const result = invoke(this.fn, arity, first, second, this.#makeExtra(index));
      this.rows?.endCall();
      return this.#checked(await result);
    } catch (error) {
      throw this.failure(error, index);
    }
  }

  #repeat(index: number, arity: Arity, first: unknown, second: unknown): unknown {
    try {
      if (!this.#loaded) {
        const loaded = this.#load(arity);
        if (loaded instanceof Promise) {
          return this.#repeatLater(loaded, index, arity, first, second);
        }
        this.#accept(loaded, arity);
      }
      const extra = this.#makeExtra(index);
      const result = this.#repeatWatch.time(() => invoke(this.fn, arity, first, second, extra));
      return isThenable(result) ? this.settle(result, index) : this.#checked(result);
    } catch (error) {
      throw this.failure(error, index);
    }
  }

  #checked(result: unknown): unknown {
    return this.#check === undefined ? result : this.#check.checked(result);
  }

  async #repeatLater(
    loading: Promise<LoadedFunction>,
    index: number,
    arity: Arity,
    first: unknown,
    second: unknown,
  ): Promise<unknown> {
    try {
      const loaded = await loading;
      if (!this.#loaded) this.#accept(loaded, arity);
    } catch (error) {
      throw this.failure(error, index);
    }
    return await this.#repeat(index, arity, first, second);
  }

  #makeExtra(index?: number): Extra {
    return new Extra(this, this.#context.host, this.#captures, index);
  }
}
