/**
 * `interleave`: the elements of several datasets in turn.
 */
import { Call, NodeFunction } from "../call.ts";
import { checkInteger } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { type ElementIterator, END, type Pulled } from "../iterator.ts";
import { type Attributes, type DatasetNode, registerNode, UNKNOWN_CARDINALITY } from "../node.ts";
import { checkSpec, type ElementSpec } from "../spec.ts";
import { AGAIN, stepOn, type Stepping } from "../stepping.ts";
import { openMade } from "./flat_map.ts";
import { UnaryIterator, UnaryNode } from "./unary.ts";

/** How many datasets are open at once by default; recorded with the pipeline, not the host's. */
const CYCLE_LENGTH_DEFAULT = 4;

/** How the turns go. */
export interface InterleaveAttributes {
  readonly cycleLength?: number | undefined;
  readonly blockLength?: number | undefined;
  /** What the datasets that the function makes give, where the user says so. */
  readonly spec?: ElementSpec;
}

export class InterleaveNode extends UnaryNode {
  readonly fn: NodeFunction;
  readonly cycleLength: number;
  readonly blockLength: number;
  readonly #spec: ElementSpec;

  constructor(input: DatasetNode, fn: NodeFunction, options: InterleaveAttributes = {}) {
    super("interleave", input);
    const { cycleLength = CYCLE_LENGTH_DEFAULT, blockLength = 1 } = options;
    this.fn = fn;
    this.#spec = checkSpec("interleave", options.spec);
    this.cycleLength = checkInteger("interleave", "cycleLength", cycleLength, 1);
    this.blockLength = checkInteger("interleave", "blockLength", blockLength, 1);
  }

  override get attributes(): Attributes {
    const { fn, cycleLength, blockLength } = this;
    return { fn, cycleLength, blockLength, spec: this.#spec };
  }

  override get elementSpec(): ElementSpec {
    return this.#spec;
  }

  override get cardinality(): number {
    return this.input.cardinality === 0 ? 0 : UNKNOWN_CARDINALITY;
  }

  override makeIterator(context: IteratorContext): InterleaveIterator {
    return new InterleaveIterator(context, this);
  }
}

registerNode("interleave", {
  fromWire: (a, [input]) => new InterleaveNode(input!, NodeFunction.among(a, "fn"), a),
});

class InterleaveIterator extends UnaryIterator implements Stepping {
  readonly #call: Call;
  readonly #cycleLength: number;
  readonly #blockLength: number;
  /** One place per open dataset. An empty place is filled when its turn comes. */
  readonly #slots: (ElementIterator | undefined)[] = [];
  #turn = 0;
  #givenInBlock = 0;
  #open = 0;
  #inputEnded = false;

  constructor(context: IteratorContext, { fn, cycleLength, blockLength }: InterleaveNode) {
    super(context);
    this.#call = new Call(fn, context);
    this.#cycleLength = cycleLength;
    this.#blockLength = blockLength;
  }

  override next(): Pulled<unknown> {
    return stepOn(this, this.context.pacer);
  }

  step(): unknown {
    if (this.#open === 0 && this.#inputEnded) return END;
    const current = this.#slots[this.#turn];
    if (current !== undefined) {
      const element = this.#pullFrom(current);
      return element instanceof Promise ? this.#innerLater(element) : this.#inner(element);
    }
    if (this.#inputEnded) {
      this.#advance();
      return AGAIN;
    }
    const outer = this.input.next();
    return outer instanceof Promise ? this.#outerLater(outer) : this.#outer(outer);
  }

  /** A failed element takes its place in the block like any other. */
  #pullFrom(current: ElementIterator): Pulled<unknown> {
    try {
      return current.next();
    } catch (error) {
      this.#count();
      throw error;
    }
  }

  /** An element; or a dataset's end, which ends its block too. */
  #inner(element: unknown): unknown {
    if (element !== END) {
      this.#count();
      this.stats.elements++;
      return element;
    }
    this.#slots[this.#turn]?.dispose();
    this.#slots[this.#turn] = undefined;
    this.#open--;
    this.#advance();
    return AGAIN;
  }

  #count(): void {
    if (++this.#givenInBlock === this.#blockLength) this.#advance();
  }

  #advance(): void {
    this.#givenInBlock = 0;
    // Places that no dataset came into are passed over once there are no more to come.
    const places = this.#inputEnded ? this.#slots.length : this.#cycleLength;
    this.#turn = this.#turn + 1 < places ? this.#turn + 1 : 0;
  }

  #outer(outer: unknown): unknown {
    if (this.disposed) return END;
    if (outer === END) {
      this.#inputEnded = true;
      return AGAIN;
    }
    const made = this.#call.one(outer);
    return made instanceof Promise ? this.#placeLater(made) : this.#place(made);
  }

  #place(made: unknown): typeof AGAIN {
    if (this.disposed) return AGAIN;
    this.#slots[this.#turn] = openMade(made, this.#call, this.context);
    this.#open++;
    return AGAIN;
  }

  async #innerLater(pending: Promise<unknown>): Promise<unknown> {
    let element: unknown;
    try {
      element = await pending;
    } catch (error) {
      this.#count();
      throw error;
    }
    return this.disposed ? END : this.#inner(element);
  }

  async #outerLater(pending: Promise<unknown>): Promise<unknown> {
    return this.#outer(await this.arrival(pending));
  }

  async #placeLater(pending: Promise<unknown>): Promise<unknown> {
    return this.#place(await pending);
  }

  protected override release(): void {
    for (const slot of this.#slots) slot?.dispose();
    this.#slots.length = 0;
    this.#open = 0;
    this.#inputEnded = true;
    super.release();
  }
}
