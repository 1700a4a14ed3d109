/** `fromGenerator`: elements that a user's generator yields. */
import type { Captures } from "../../udf/user_function.ts";
import type { FunctionOptions } from "../../dataset_types.ts";
import { LeatError } from "../../../core/error.ts";
import { Call, NodeFunction } from "../../udf/call.ts";
import { optionsOf, show } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { Stopwatch } from "../../iterators/stopwatch.ts";
import { ElementIterator, END, type Pulled } from "../../iterator.ts";
import { type Attributes, DatasetNode, registerNode, UNKNOWN_CARDINALITY } from "../../node.ts";
import { isThenable } from "../../udf/call.ts";

export class FromGeneratorNode extends DatasetNode {
  static readonly options = optionsOf<FunctionOptions<Captures>>("fromGenerator", {
    captures: true,
  });
  override readonly division = "whole";
  override readonly elementSpec: undefined = undefined;
  override readonly cardinality = UNKNOWN_CARDINALITY;
  readonly fn: NodeFunction;

  constructor(fn: NodeFunction) {
    super("fromGenerator", []);
    this.fn = fn;
  }

  override get attributes(): Attributes {
    return { fn: this.fn };
  }

  override makeIterator(context: IteratorContext): GeneratorIterator {
    return new GeneratorIterator(context, this.fn);
  }
}

registerNode("fromGenerator", {
  fromWire: (a) => new FromGeneratorNode(NodeFunction.among(a, "fn", 0)),
});

type Running = Iterator<unknown> | AsyncIterator<unknown>;

interface GeneratorState {
  readonly steps: number;
  readonly ended: boolean;
}

class GeneratorIterator extends ElementIterator {
  readonly #context: IteratorContext;
  readonly #call: Call;
  readonly #watch: Stopwatch;
  readonly #resume = (): unknown => this.#running!.next();
  #running: Running | undefined;
  /** How often the generator was resumed. */
  #steps = 0;
  #ended = false;

  constructor(context: IteratorContext, fn: NodeFunction) {
    super();
    this.#context = context;
    this.#call = new Call(fn, context);
    this.#watch = new Stopwatch(context.host, context.stats);
  }

  override next(): Pulled<unknown> {
    if (this.#ended || this.disposed) return END;
    if (this.#running === undefined) return this.#start();
    this.#steps++;
    try {
      const result: unknown = this.#watch.time(this.#resume);
      return isThenable(result) ? this.#settle(result) : this.#take(result);
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /** A generator may throw any value; readers get an error. */
  #failed(error: unknown): Error {
    return this.#context.stats.failed(Error.isError(error) ? error : LeatError.from(error));
  }

  /** A generator that cannot be started fails once and ends. */
  #start(): Pulled<unknown> {
    this.#ended = true;
    const made = this.#call.none();
    if (made instanceof Promise) return made.then((later) => this.#started(later));
    return this.#started(made);
  }

  #started(made: unknown): Pulled<unknown> {
    try {
      this.#running = iteratorOf(made);
    } catch (error) {
      throw this.#failed(error);
    }
    this.#ended = false;
    if (this.disposed) this.release();
    return this.next();
  }

  async #settle(pending: PromiseLike<unknown>): Promise<unknown> {
    try {
      return this.#take(await pending);
    } catch (error) {
      throw this.#failed(error);
    }
  }

  #take(result: unknown): unknown {
    if (typeof result !== "object" || result === null) {
      this.#ended = true;
      throw new LeatError(
        "invalid_argument",
        `fromGenerator: next() must return an object { value, done }, got ${show(result)}`,
      );
    }
    const { done, value } = result as Partial<IteratorResult<unknown>>;
    if (done) {
      this.#ended = true;
      return END;
    }
    return this.#context.stats.gave(value);
  }

  protected override saveState(): Promise<GeneratorState> {
    return Promise.resolve({ steps: this.#steps, ended: this.#ended });
  }

  /** A generator cannot be saved: it is rerun with the same random state for the same number of steps. */
  protected override async restoreState(state: unknown): Promise<void> {
    const { steps, ended } = state as GeneratorState;
    this.#ended = ended;
    if (ended || steps === 0) return;
    const { pacer } = this.#context;
    this.#running = iteratorOf(await this.#call.none());
    while (this.#steps < steps && !this.disposed) {
      this.#steps++;
      try {
        const result: Partial<IteratorResult<unknown>> | undefined = await this.#running.next();
        if (result?.value instanceof Promise) await result.value; // of a synchronous generator
      } catch {
        // The saved iterator has reported this error.
      }
      if (pacer.due()) await pacer.yield();
    }
  }

  /** Lets the generator run its `finally` blocks. Their errors are ignored: no call could report them. */
  protected override release(): void {
    this.#ended = true;
    try {
      Promise.resolve(this.#running?.return?.()).catch(() => {});
    } catch {
      // A synchronous generator's `finally` threw: see above.
    }
  }
}

function iteratorOf(made: unknown): Running {
  if (typeof made === "object" && made !== null) {
    const iterable = made as Partial<Iterable<unknown> & AsyncIterable<unknown>>;
    if (typeof iterable[Symbol.asyncIterator] === "function") {
      return iterable[Symbol.asyncIterator]!();
    }
    if (typeof iterable[Symbol.iterator] === "function") return iterable[Symbol.iterator]!();
  }
  throw new LeatError(
    "invalid_argument",
    `fromGenerator: the function must return an iterable or an async iterable, got ${show(made)}`,
  );
}
