/**
 * `fromGenerator`: elements that a user's generator yields.
 */
import { LeatError } from "../../core/error.ts";
import { Call, NodeFunction } from "../call.ts";
import { show } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { ElementIterator, END, type Pulled } from "../iterator.ts";
import { type Attributes, DatasetNode, registerNode, UNKNOWN_CARDINALITY } from "../node.ts";

export class FromGeneratorNode extends DatasetNode {
  readonly fn: NodeFunction;

  constructor(fn: NodeFunction) {
    super("fromGenerator", []);
    this.fn = fn;
  }

  override get attributes(): Attributes {
    return { fn: this.fn };
  }

  override get elementSpec(): undefined {
    return undefined;
  }

  override get cardinality(): number {
    return UNKNOWN_CARDINALITY;
  }

  override makeIterator(context: IteratorContext): GeneratorIterator {
    return new GeneratorIterator(context, this.fn);
  }
}

registerNode("fromGenerator", {
  fromWire: (a) => new FromGeneratorNode(NodeFunction.among(a, "fn")),
});

type Running = Iterator<unknown> | AsyncIterator<unknown>;

class GeneratorIterator extends ElementIterator {
  readonly #context: IteratorContext;
  readonly #call: Call;
  #running: Running | undefined;
  #ended = false;

  constructor(context: IteratorContext, fn: NodeFunction) {
    super();
    this.#context = context;
    this.#call = new Call(fn, context);
  }

  override next(): Pulled<unknown> {
    if (this.#ended || this.disposed) return END;
    if (this.#running === undefined) return this.#start();
    const result: unknown = this.#running.next();
    return isThenable(result) ? this.#settle(result) : this.#take(result);
  }

  /** A generator that cannot be started is an error once, and ended. */
  #start(): Pulled<unknown> {
    this.#ended = true;
    const made = this.#call.none();
    if (made instanceof Promise) return made.then((later) => this.#started(later));
    return this.#started(made);
  }

  #started(made: unknown): Pulled<unknown> {
    this.#running = iteratorOf(made);
    this.#ended = false;
    if (this.disposed) this.release();
    return this.next();
  }

  async #settle(pending: PromiseLike<unknown>): Promise<unknown> {
    return this.#take(await pending);
  }

  #take(result: unknown): unknown {
    if (typeof result !== "object" || result === null) {
      this.#ended = true;
      throw new LeatError(
        "invalid_argument",
        `fromGenerator: next() must give an object of value and done, got ${show(result)}`,
      );
    }
    const { done, value } = result as Partial<IteratorResult<unknown>>;
    if (done) {
      this.#ended = true;
      return END;
    }
    this.#context.stats.elements++;
    return value;
  }

  /** Lets the generator run its `finally` blocks; nobody is left to hear of an error in them. */
  protected override release(): void {
    this.#ended = true;
    try {
      Promise.resolve(this.#running?.return?.()).catch(() => {});
    } catch {
      // A synchronous generator's `finally` threw: as above.
    }
  }
}

/** Promises of other realms and libraries too, as in `for await`. */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value &&
    typeof value.then === "function";
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
