/** Bases of operators with one input. */
import type { IteratorContext } from "../context.ts";
import { ElementIterator, type END, type Pulled, type Token } from "../iterator.ts";
import { stepOn, type Stepping } from "../iterators/stepping.ts";
import { type Changeable, DatasetNode, UNKNOWN_CARDINALITY } from "../node.ts";
import type { ElementSpec } from "../elements/spec.ts";
import type { OperatorMeter } from "../iterators/stats.ts";

export abstract class UnaryNode extends DatasetNode {
  constructor(kind: string, input: DatasetNode) {
    super(kind, [input]);
  }

  protected get input(): DatasetNode {
    return this.inputs[0]!;
  }

  /** Unknown for most operators until they have run. */
  override get cardinality(): number {
    return this.input.cardinality === 0 ? 0 : UNKNOWN_CARDINALITY;
  }
}

/** The node of an operator that gives one element for each element of its input. */
export abstract class OneToOneNode extends UnaryNode {
  override get cardinality(): number {
    return this.input.cardinality;
  }

  override splitMultiple(multiple: number): number {
    return multiple;
  }
}

export abstract class ElementsOfInputNode extends UnaryNode {
  override get elementSpec(): ElementSpec {
    return this.input.elementSpec;
  }
}

/** The node of an operator that gives exactly the elements of its input. */
export abstract class SameElementsNode extends OneToOneNode {
  override get elementSpec(): ElementSpec {
    return this.input.elementSpec;
  }

  override fieldsOfInput(wanted: readonly string[] | undefined): readonly string[] | undefined {
    return wanted;
  }

  override changeableInput(own: Changeable): Changeable {
    return own;
  }
}

/** The node of a setting or a mark: it has no iterator of its own, but uses its input's. */
export abstract class PassedNode extends SameElementsNode {
  override readonly division = "element";

  override tokenAt(index: number): Token | undefined {
    return this.input.tokenAt(index);
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    return context.passInput();
  }
}

export abstract class UnaryIterator extends ElementIterator {
  protected readonly context: IteratorContext;
  readonly stats: OperatorMeter;
  protected readonly input: ElementIterator;

  constructor(context: IteratorContext, input = context.makeInput()) {
    super();
    this.context = context;
    this.stats = context.stats;
    this.input = input;
  }

  /** Waits for the input (number 0), or for a dataset of its own, and measures the time. */
  protected arrival(pending: Promise<unknown>, input?: 0): Promise<unknown | typeof END> {
    return this.context.waitFor(pending, input);
  }

  protected override async saveState(): Promise<unknown> {
    return { ...await this.ownState(), input: await this.input.save() };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    await this.input.restore((state as { input: unknown }).input);
    await this.restoreOwn(state);
  }

  /** What `saveState()` returns besides the state of the input. */
  protected abstract ownState(): object | Promise<object>;

  /** Resumes from what `ownState()` returned, after the input was restored. See `restoreState()`. */
  protected abstract restoreOwn(state: unknown): void | Promise<void>;

  protected override release(): void {
    this.input.dispose();
  }
}

/** An iterator that may have to pull many elements before it can give one. */
export abstract class SteppingIterator extends UnaryIterator implements Stepping {
  override next(): Pulled<unknown> {
    return stepOn(this, this.context.pacer);
  }

  abstract step(): unknown;
}
