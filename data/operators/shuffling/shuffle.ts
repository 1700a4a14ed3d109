/** `shuffle`: elements in random order, drawn from a buffer that is kept full. */
import { checkBoolean, checkInteger, checkSeed, optionsOf } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { restoreHeld, saveHeld } from "../../elements/held.ts";
import { END, type Token } from "../../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../../node.ts";
import { Draws, Seeding } from "../../random/seeding.ts";
import { BufferMeter } from "../../iterators/stats.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import { SameElementsNode, SteppingIterator } from "../unary.ts";

/** Options of `shuffle` and `globalShuffle`. */
export interface ShuffleOptions {
  /** The seed of the draws. Default: derived from that of `withOptions`. */
  readonly seed?: number | bigint | undefined;
  /**
   * Whether every iteration and repetition has another order. Default true. To divide a dataset with
   * `take` and `skip`, as for training and validation, set it to false and give a `seed` here: with
   * that of `withOptions`, two pipelines that continue differently have different orders, and the
   * parts overlap.
   */
  readonly reshuffleEachIteration?: boolean | undefined;
}

export class ShuffleNode extends SameElementsNode {
  static readonly options = optionsOf<ShuffleOptions>("shuffle", {
    seed: true,
    reshuffleEachIteration: true,
  });
  override readonly division = "shuffle";
  override readonly adviceFacts = {
    toHoldLess:
      "a smaller bufferSize, or shuffle earlier, such as file names, before elements become large",
  };
  readonly bufferSize: number;
  readonly seeding: Seeding;

  constructor(input: DatasetNode, bufferSize: unknown, options: ShuffleOptions = {}) {
    super("shuffle", input);
    this.bufferSize = checkInteger("shuffle", "bufferSize", bufferSize, 1);
    const { seed, reshuffleEachIteration } = options;
    this.seeding = new Seeding(
      checkSeed("shuffle", seed),
      checkBoolean("shuffle", "reshuffleEachIteration", reshuffleEachIteration, true),
    );
  }

  override get drawsNumbers(): boolean {
    return this.seeding.seed === undefined;
  }

  override get attributes(): Attributes {
    return {
      bufferSize: this.bufferSize,
      seed: this.seeding.seed,
      reshuffleEachIteration: this.seeding.anewEachIteration,
    };
  }

  override get shared(): Seeding {
    return this.seeding;
  }

  override makeIterator(context: IteratorContext): ShuffleIterator {
    return new ShuffleIterator(context, this);
  }
}

registerNode("shuffle", { fromWire: (a, [input]) => new ShuffleNode(input!, a.bufferSize, a) });

interface ShuffleState {
  readonly held: unknown;
  readonly draws: unknown;
  readonly inputEnded: boolean;
}

export class ShuffleIterator extends SteppingIterator {
  readonly #size: number;
  readonly #draws: Draws;
  readonly #meter: BufferMeter;
  #buffer: unknown[] = [];
  /** The tokens of the elements in the buffer, by index; fewer if the input did not give all of them. */
  #tokens: Token[] = [];
  #inputEnded = false;
  /** The element that is being read ahead; never rejects. */
  #reading: Promise<void> | undefined;
  /** What reading ahead threw, until it is thrown. */
  #failure: { readonly error: unknown } | undefined;

  constructor(context: IteratorContext, node: ShuffleNode) {
    super(context);
    this.#size = node.bufferSize;
    this.#draws = new Draws(node.seeding, context);
    this.#meter = new BufferMeter(context.stats);
  }

  /** Whether the input has ended, and elements are left. */
  get isEmptying(): boolean {
    return this.#inputEnded && this.#buffer.length > 0;
  }

  get #isFull(): boolean {
    return this.#buffer.length >= this.#size;
  }

  /**
   * Rule `shuffleAndRepeatFusion`: begins to read one more element. Called before the first `next()`.
   * Nothing is read ahead after an error.
   */
  readAhead(): void {
    const isOver = this.#inputEnded || this.#failure !== undefined;
    if (isOver || this.#reading !== undefined || this.#isFull) return;
    try {
      const element = this.input.next();
      if (element instanceof Promise) this.#reading = this.#readLater(element);
      else this.#holdAhead(element);
    } catch (error) {
      this.#failure = { error };
    }
  }

  async #readLater(pending: Promise<unknown>): Promise<void> {
    try {
      this.#holdAhead(await pending);
    } catch (error) {
      this.#failure = { error };
    }
    this.#reading = undefined;
  }

  #holdAhead(element: unknown): void {
    this.#hold(element);
    this.#meter.holds(this.#buffer.length);
  }

  override step(): unknown {
    if (this.#reading !== undefined) return this.#reading.then(() => AGAIN);
    if (this.#failure !== undefined) throw this.#takeFailure();
    if (this.#inputEnded || this.#isFull) return this.#draw();
    const element = this.input.next();
    return element instanceof Promise
      ? this.arrival(element).then((element) => this.#accept(element))
      : this.#accept(element);
  }

  #takeFailure(): unknown {
    const { error } = this.#failure!;
    this.#failure = undefined;
    return error;
  }

  /** Draws only from a full buffer, so that each element is one of `size` candidates. */
  #accept(element: unknown): unknown {
    if (this.disposed) return END;
    this.#hold(element);
    return this.#isFull ? this.#draw() : AGAIN;
  }

  /** Puts what the input has just given into the buffer. */
  #hold(element: unknown): void {
    if (this.disposed) return;
    if (element === END) {
      this.#inputEnded = true;
      return;
    }
    const token = this.input.token();
    this.#buffer.push(element);
    if (token !== undefined) this.#tokens.push(token);
    this.#meter.enters(element);
  }

  #draw(): unknown {
    const buffer = this.#buffer;
    if (buffer.length === 0) return END;
    const index = this.#draws.stream.int(buffer.length);
    const element = takeOut(buffer, index);
    if (this.#tokens.length > 0) takeOut(this.#tokens, index);
    this.#meter.holds(buffer.length);
    return this.stats.gave(element);
  }

  protected override ownState(): ShuffleState {
    return {
      held: saveHeld({ elements: this.#buffer, tokens: this.#tokens }),
      draws: this.#draws.save(),
      inputEnded: this.#inputEnded,
    };
  }

  protected override async restoreOwn(state: unknown): Promise<void> {
    const { held, draws, inputEnded } = state as ShuffleState;
    const { elements, tokens } = await restoreHeld(held, this.input);
    this.#draws.restore(draws);
    this.#inputEnded = inputEnded;
    this.#buffer = elements;
    this.#tokens = tokens;
    for (const element of elements) this.#meter.enters(element);
    this.#meter.holds(elements.length);
  }

  protected override release(): void {
    super.release();
    this.#buffer.length = 0;
    this.#tokens.length = 0;
    this.#failure = undefined;
    this.#inputEnded = true;
    this.#meter.holds(0);
  }
}

/** Removes the value at `index`; the last one moves there. */
function takeOut(values: unknown[], index: number): unknown {
  const value = values[index];
  const last = values.pop();
  if (index < values.length) values[index] = last;
  return value;
}
