/**
 * `shuffle`: elements in random order, drawn from a buffer that is kept full.
 */
import type { RandomStream } from "../../core/philox.ts";
import { checkBoolean, checkInteger, checkSeed } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { END, type Pulled } from "../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../node.ts";
import type { ElementSpec } from "../spec.ts";
import { BufferMeter } from "../stats.ts";
import { AGAIN, stepOn, type Stepping } from "../stepping.ts";
import { UnaryIterator, UnaryNode } from "./unary.ts";

/** How `shuffle` draws. */
export interface ShuffleAttributes {
  readonly seed?: number | bigint | undefined;
  readonly reshuffleEachIteration?: boolean | undefined;
}

export class ShuffleNode extends UnaryNode {
  readonly bufferSize: number;
  readonly seed: bigint | undefined;
  readonly reshuffleEachIteration: boolean;
  /** Drawn once when nobody chose a seed, but all iterations shall have the same order. */
  #drawn: bigint | undefined;

  constructor(input: DatasetNode, bufferSize: unknown, options: ShuffleAttributes = {}) {
    super("shuffle", input);
    this.bufferSize = checkInteger("shuffle", "bufferSize", bufferSize, 1);
    this.seed = checkSeed("shuffle", options.seed);
    this.reshuffleEachIteration = checkBoolean(
      "shuffle",
      "reshuffleEachIteration",
      options.reshuffleEachIteration,
      true,
    );
  }

  override get attributes(): Attributes {
    return {
      bufferSize: this.bufferSize,
      seed: this.seed,
      reshuffleEachIteration: this.reshuffleEachIteration,
    };
  }

  override get elementSpec(): ElementSpec {
    return this.input.elementSpec;
  }

  override get cardinality(): number {
    return this.input.cardinality;
  }

  override splitMultiple(multiple: number): number {
    return multiple;
  }

  override makeIterator(context: IteratorContext): ShuffleIterator {
    return new ShuffleIterator(context, this.bufferSize, this.#luck(context));
  }

  #luck(context: IteratorContext): RandomStream {
    const epoch = this.reshuffleEachIteration ? context.luck.epoch : 0;
    let seed = this.seed;
    if (!this.reshuffleEachIteration && !context.luck.seeded) {
      seed ??= this.#drawn ??= context.host.entropy64();
    }
    return seed === undefined ? context.randomStream(epoch) : context.seededStream(seed, epoch);
  }
}

registerNode("shuffle", { fromWire: (a, [input]) => new ShuffleNode(input!, a.bufferSize, a) });

class ShuffleIterator extends UnaryIterator implements Stepping {
  readonly #size: number;
  readonly #random: RandomStream;
  readonly #meter: BufferMeter;
  readonly #buffer: unknown[] = [];
  #inputEnded = false;

  constructor(context: IteratorContext, size: number, random: RandomStream) {
    super(context);
    this.#size = size;
    this.#random = random;
    this.#meter = new BufferMeter(context.stats);
  }

  override next(): Pulled<unknown> {
    return stepOn(this, this.context.pacer);
  }

  step(): unknown {
    if (this.#inputEnded) return this.#draw();
    const element = this.input.next();
    return element instanceof Promise ? this.#later(element) : this.#accept(element);
  }

  async #later(pending: Promise<unknown>): Promise<unknown> {
    return this.#accept(await this.arrival(pending));
  }

  /** An element may leave only when the buffer is full, so that each could be any of `size`. */
  #accept(element: unknown): unknown {
    if (this.disposed) return END;
    if (element === END) {
      this.#inputEnded = true;
      return AGAIN;
    }
    this.#buffer.push(element);
    this.#meter.enters(element);
    return this.#buffer.length < this.#size ? AGAIN : this.#draw();
  }

  #draw(): unknown {
    const buffer = this.#buffer;
    if (buffer.length === 0) return END;
    const index = this.#random.int(buffer.length);
    const element = buffer[index];
    const last = buffer.pop();
    if (index < buffer.length) buffer[index] = last;
    this.#meter.holds(buffer.length);
    this.stats.elements++;
    return element;
  }

  protected override release(): void {
    super.release();
    this.#buffer.length = 0;
    this.#inputEnded = true;
    this.#meter.holds(0);
  }
}
