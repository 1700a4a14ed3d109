/**
 * `prefetch`: reads ahead of its consumer.
 */
import { checkInteger } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { END, type Pulled } from "../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../node.ts";
import { AUTOTUNE } from "../parallelism.ts";
import type { ElementSpec } from "../spec.ts";
import { BufferMeter } from "../stats.ts";
import { UnaryIterator, UnaryNode } from "./unary.ts";

/** What AUTOTUNE reads ahead: at most this many elements… */
const AUTOTUNE_ELEMENTS = 16;
/** …and, beyond the first, no more than about this many bytes. */
const AUTOTUNE_BYTES_MAX = 64 << 20;

export class PrefetchNode extends UnaryNode {
  /** How many elements to read ahead, or `AUTOTUNE`. */
  readonly bufferSize: number;

  constructor(input: DatasetNode, bufferSize: unknown) {
    super("prefetch", input);
    this.bufferSize = checkInteger("prefetch", "n", bufferSize, AUTOTUNE);
  }

  override get attributes(): Attributes {
    return { bufferSize: this.bufferSize };
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

  override makeIterator(context: IteratorContext): PrefetchIterator {
    return this.bufferSize === AUTOTUNE
      ? new PrefetchIterator(context, AUTOTUNE_ELEMENTS, AUTOTUNE_BYTES_MAX)
      : new PrefetchIterator(context, this.bufferSize, Infinity);
  }
}

registerNode("prefetch", { fromWire: (a, [input]) => new PrefetchNode(input!, a.bufferSize) });

/** What the input answered: an element or `END`, or the error of an element. */
interface Arrived {
  readonly failed: boolean;
  readonly value: unknown;
}

/**
 * Holds at most `limit` answers, the one being waited for included. What the input can give at once
 * is read ahead in turns of the event loop that the consumer leaves free; what it must wait for is
 * asked for at once, since waiting takes nobody's time.
 */
export class PrefetchIterator extends UnaryIterator {
  readonly #limit: number;
  readonly #bytesMax: number;
  readonly #meter: BufferMeter;
  readonly #buffer: Arrived[] = [];
  /** The pull in flight. */
  #pending: Promise<void> | undefined;
  #background = false;
  #inputWaits = false;
  #inputEnded = false;

  constructor(context: IteratorContext, limit: number, bytesMax: number) {
    super(context);
    this.#limit = limit;
    this.#bytesMax = bytesMax;
    this.#meter = new BufferMeter(context.stats);
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
    return this.#give({ failed: false, value: element });
  }

  #give({ failed, value }: Arrived): unknown {
    if (value === END) {
      this.#inputEnded = true;
      return END;
    }
    this.#meter.holds(this.#buffer.length);
    this.#readAhead();
    if (failed) throw value;
    this.stats.elements++;
    return value;
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
    return !this.#inputEnded && !this.disposed && this.#buffer.length < this.#limit &&
      (this.#buffer.length === 0 || this.#meter.bytes < this.#bytesMax);
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
      this.#arrive({ failed: true, value: error });
      return;
    }
    this.#inputWaits = element instanceof Promise;
    if (element instanceof Promise) this.#await(element);
    else this.#arrive({ failed: false, value: element });
  }

  /** Notes the pull in flight. The promise it answers never rejects. */
  #await(element: Promise<unknown>): Promise<void> {
    const settle = async () => {
      let arrived: Arrived;
      try {
        arrived = { failed: false, value: await this.arrival(element) };
      } catch (error) {
        arrived = { failed: true, value: error };
      }
      this.#pending = undefined;
      if (this.disposed) return;
      this.#arrive(arrived);
      this.#readAhead();
    };
    return this.#pending = settle();
  }

  #arrive(arrived: Arrived): void {
    if (arrived.value === END) this.#inputEnded = true;
    this.#buffer.push(arrived);
    this.#meter.enters(arrived.value);
    this.#meter.holds(this.#buffer.length);
  }

  protected override release(): void {
    super.release();
    this.#buffer.length = 0;
    this.#inputEnded = true;
    this.#meter.holds(0);
  }
}
