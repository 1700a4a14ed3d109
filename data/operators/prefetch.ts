/** `prefetch`: reads ahead of its consumer. */
import {
  type Outcome,
  restoreOutcome,
  type SavedOutcome,
  saveOutcome,
} from "../elements/answer.ts";
import { LeatError } from "../../core/error.ts";
import { Fifo } from "../../core/fifo.ts";
import { checkInteger, checkOptionalBoolean, optionsOf } from "../check.ts";
import { wholeState } from "../checkpoint/whole_state.ts";
import type { IteratorContext } from "../context.ts";
import { isForeign } from "../foreign/foreign.ts";
import { type ElementIterator, END, type Pulled, type Token } from "../iterator.ts";
import { LazyIterator } from "../iterators/lazy_iterator.ts";
import { type Attributes, type DatasetNode, inPreOrder, registerNode } from "../node.ts";
import type { Setting } from "../autotune/model.ts";
import { AUTOTUNE, BUFFER_RANGE } from "../parallelism.ts";
import type { NoOp } from "../optimizer/no_op.ts";
import { sameBelow } from "../optimizer/rules/dead_transformation_elimination.ts";
import { isOfStream } from "../iterators/reading_failure.ts";
import { Seeding } from "../random/seeding.ts";
import { BufferMeter } from "../iterators/stats.ts";
import { SameElementsNode, UnaryIterator } from "./unary.ts";

/** Options of `prefetch`. */
export interface PrefetchOptions {
  /**
   * Whether all operators up to this one run on a thread of their own, so that a training step that
   * blocks its thread does not stop them. Their functions must be self-contained, as for a service.
   * Sources in memory are copied. Up to three times `n` elements are then ahead of the consumer. If
   * the operators cannot run there, they run here, and `explain()` says why. Default false.
   */
  readonly thread?: boolean | undefined;
}

export class PrefetchNode extends SameElementsNode {
  static readonly options = optionsOf<PrefetchOptions>("prefetch", { thread: true });
  override readonly division = "element";
  override readonly adviceFacts = {
    readsAhead: true,
    toHoldLess: "prefetch fewer elements",
  } as const;
  /** How many elements to read ahead, or `AUTOTUNE`. */
  readonly bufferSize: number;

  /** Whether the pipeline up to here runs on a thread of its own. */
  readonly thread: boolean | undefined;

  constructor(input: DatasetNode, bufferSize: unknown, { thread }: PrefetchOptions = {}) {
    super("prefetch", input);
    this.bufferSize = checkInteger("prefetch", "n", bufferSize, AUTOTUNE);
    this.thread = checkOptionalBoolean("prefetch", "thread", thread);
  }

  override get attributes(): Attributes {
    const { thread } = this;
    return { ...this.checkpointAttributes, ...(thread === undefined ? {} : { thread }) };
  }

  override get checkpointAttributes(): Attributes {
    return { bufferSize: this.bufferSize };
  }

  override tokenAt(index: number): Token | undefined {
    return this.input.tokenAt(index);
  }

  override get noOp(): NoOp | undefined {
    return this.bufferSize === 0 && this.thread !== true ? { fields: { buffer: [] } } : undefined;
  }

  override get dead(): NoOp | undefined {
    const below = sameBelow<PrefetchNode>(this);
    if (below === undefined || this.bufferSize === AUTOTUNE) return undefined;
    if (this.thread === true && below.thread !== true) return undefined;
    if (below.bufferSize < this.bufferSize) return undefined;
    return { fields: { buffer: [] }, inputOf: withBufferBelow };
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    if (this.thread !== true || !context.mayRunElsewhere) {
      return new PrefetchIterator(context, this.bufferSize);
    }
    return new LazyIterator(context, () => this.#iteratorOnThread(context));
  }

  /** If it cannot run on a thread, it runs here; `explain()` says why. */
  async #iteratorOnThread(context: IteratorContext): Promise<ElementIterator> {
    // Loaded on demand: most pipelines run on one thread.
    const { openSegment } = await import("../threads/segment_iterator.ts");
    try {
      return await openSegment(this, context);
    } catch (error) {
      context.stats.noteObstacle(LeatError.from(error).message);
      return new PrefetchIterator(context, this.bufferSize);
    }
  }
}

registerNode("prefetch", {
  fromWire: (a, [input]) => new PrefetchNode(input!, a.bufferSize, a as PrefetchOptions),
});

/**
 * Checks all that does not depend on the iteration.
 *
 * @throws {LeatError} with the reason why a node and all below it cannot run on another thread.
 */
export function requireMovable(node: DatasetNode): void {
  for (const below of inPreOrder(node)) refuseUnmovable(below);
}

function refuseUnmovable(node: DatasetNode): void {
  const { kind, shared, division } = node;
  const why = division === "served"
    ? "reads from a service, whose client is here"
    : isForeign(node)
    ? "comes from another program"
    : shared !== undefined && !(shared instanceof Seeding)
    ? "keeps elements for later iterations here; cache(path) keeps them in a file"
    : undefined;
  if (why === undefined) return;
  throw new LeatError("failed_precondition", `It cannot run on another thread: ${kind} ${why}.`);
}

/** The input's answer: an element or `END`, or the error of an element. */
interface Arrived extends Outcome {
  readonly token: Token | undefined;
}

export interface PrefetchState {
  readonly buffer: readonly SavedOutcome[];
  readonly input: unknown;
}

/** The state of the `prefetch` below, which gets the elements that the one above had read from it. */
function withBufferBelow(state: { readonly input: unknown }): PrefetchState {
  const { buffer, input } = state as PrefetchState;
  const below = wholeState(input as PrefetchState);
  return { buffer: [...buffer, ...below.buffer], input: below.input };
}

/**
 * Holds at most `bufferSize` answers, including the one being waited for. Elements that the input
 * can give at once are read while the consumer leaves the event loop idle. If the input had to wait
 * for the last element, the next one is requested at once, because waiting uses no CPU.
 */
export class PrefetchIterator extends UnaryIterator {
  readonly #limit: Setting;
  readonly #meter: BufferMeter;
  readonly #buffer = new Fifo<Arrived>();
  #pending: Promise<void> | undefined;
  #background = false;
  #inputWaits = false;
  #inputEnded = false;
  /** Whether reading the input failed. Nothing is read after that. */
  #inputFailed = false;
  /** Nothing is read ahead while the iteration is saved. */
  #paused = false;
  #tokenGiven: Token | undefined;

  constructor(context: IteratorContext, bufferSize: number) {
    super(context);
    const isTuned = bufferSize === AUTOTUNE;
    this.#limit = isTuned ? context.knob("bufferSize", BUFFER_RANGE) : { value: bufferSize };
    this.#meter = new BufferMeter(context.stats, isTuned ? context.tuner.ram : undefined);
  }

  /** Whether `next()` answers at once, with what was read ahead. */
  get isReady(): boolean {
    return this.#buffer.length > 0;
  }

  override next(): Pulled<unknown> {
    const arrived = this.#buffer.shift();
    if (arrived !== undefined) return this.#give(arrived);
    if (this.#pending !== undefined) return this.#afterPending(this.#pending);
    if (this.#inputEnded) return END;
    const element = this.input.next();
    if (element instanceof Promise) {
      this.#inputWaits = true;
      return this.#afterPending(this.#await(element));
    }
    return this.#give(this.#arrived(element));
  }

  override token(): Token | undefined {
    return this.#tokenGiven;
  }

  override again(token: Token): unknown {
    return this.input.again(token);
  }

  #give({ failed, value, token }: Arrived): unknown {
    if (value === END) {
      this.#inputEnded = true;
      return END;
    }
    this.#meter.holds(this.#buffer.length);
    this.#readAhead();
    if (failed) throw value;
    this.#tokenGiven = token;
    return this.stats.gave(value);
  }

  async #afterPending(pending: Promise<void>): Promise<unknown> {
    await pending;
    const arrived = this.#buffer.shift();
    return arrived === undefined ? END : this.#give(arrived);
  }

  /** Starts the next pull now, or leaves it to the background. */
  #readAhead(): void {
    if (this.#pending !== undefined || this.#background || !this.#hasRoom()) return;
    if (this.#inputWaits) this.#pull();
    else {
      this.#background = true;
      this.#fillInBackground();
    }
  }

  #hasRoom(): boolean {
    return !this.#inputEnded && !this.#inputFailed && !this.disposed && !this.#paused &&
      this.#buffer.length < this.#limit.value &&
      (this.#buffer.length === 0 || this.#meter.fitsOneMore);
  }

  async #fillInBackground(): Promise<void> {
    const { host, pacer } = this.context;
    await host.yield();
    while (this.#pending === undefined && this.#hasRoom()) {
      this.#pull();
      if (pacer.due()) await pacer.yield();
    }
    this.#background = false;
  }

  #pull(): void {
    let element: unknown;
    try {
      element = this.input.next();
    } catch (error) {
      this.#arrive(failed(error));
      return;
    }
    this.#inputWaits = element instanceof Promise;
    if (element instanceof Promise) this.#await(element);
    else this.#arrive(this.#arrived(element));
  }

  /** Tracks the pull in flight. The returned promise never rejects. */
  #await(element: Promise<unknown>): Promise<void> {
    const settle = async () => {
      let arrived: Arrived;
      try {
        arrived = this.#arrived(await this.arrival(element));
      } catch (error) {
        arrived = failed(error);
      }
      this.#pending = undefined;
      if (this.disposed) return;
      this.#arrive(arrived);
      this.#readAhead();
    };
    return this.#pending = settle();
  }

  /** Wraps what the input has just given. */
  #arrived(value: unknown): Arrived {
    return { failed: false, value, token: this.input.token() };
  }

  #arrive(arrived: Arrived): void {
    if (arrived.value === END) this.#inputEnded = true;
    else if (!isOfStream(arrived)) this.#inputFailed = true;
    this.#buffer.push(arrived);
    this.#meter.enters(arrived.value);
    this.#meter.holds(this.#buffer.length);
  }

  protected override async ownState(): Promise<Omit<PrefetchState, "input">> {
    const wasReading = this.#pending !== undefined || this.#background;
    this.#paused = true;
    this.context.pause.whenOver(() => {
      this.#paused = false;
      if (wasReading) this.#readAhead();
    });
    await this.#pending;
    return {
      buffer: [...this.#buffer]
        .filter((arrived) => arrived.value !== END && isOfStream(arrived))
        .map((arrived) => saveOutcome(arrived, arrived.token)),
    };
  }

  protected override async restoreOwn(state: unknown): Promise<void> {
    const { buffer } = state as PrefetchState;
    for (const saved of buffer) {
      const token = "token" in saved ? saved.token : undefined;
      this.#arrive({ ...await restoreOutcome(saved, this.input), token });
    }
  }

  protected override release(): void {
    super.release();
    this.#buffer.clear();
    this.#inputEnded = true;
    this.#meter.holds(0);
  }
}

function failed(value: unknown): Arrived {
  return { failed: true, value, token: undefined };
}
