/** Datasets that a user function made from an element, while they are read. */
import { LeatError } from "../../../core/error.ts";
import type { RandomStream } from "../../../core/philox.ts";
import type { Call } from "../../udf/call.ts";
import { show } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { argumentOf, type HeldElements, restoreHeld, saveHeld } from "../../elements/held.ts";
import type { ElementIterator } from "../../iterator.ts";
import { type DatasetNode, nodeOf } from "../../node.ts";
import { restoreShared, saveShared } from "../../checkpoint/shared_state.ts";
import { wholeState } from "../../checkpoint/whole_state.ts";
import { inOrder, unorderedService } from "../../deterministic/chain.ts";
import { ReadingFailure } from "../../iterators/reading_failure.ts";

/** A dataset that is read but is not an operator's input, such as one that a function made. */
export class Nested {
  readonly iterator: ElementIterator;
  readonly #node: DatasetNode;
  readonly #context: IteratorContext;

  constructor(node: DatasetNode, randomState: () => RandomStream, context: IteratorContext) {
    if (context.needsOrder) requireOneOrder(node, context);
    this.#node = context.keepsOrder ? inOrder(node) : node;
    this.#context = context.nested(this.#node, randomState);
    this.iterator = this.#context.makeIterator();
  }

  /** Opens `made`, the result of call `index`: `invalid_argument` unless it is a dataset. */
  static madeBy(call: Call, index: number, made: unknown, context: IteratorContext): Nested {
    return new Nested(nodeMadeBy(made, context), call.nestedRandomState(index), context);
  }

  async save(): Promise<unknown> {
    const iterator = await this.iterator.save();
    return { shared: saveShared(this.#node, this.#context), iterator };
  }

  async restore(state: unknown): Promise<void> {
    const { shared, iterator } = wholeState(state) as { shared: unknown; iterator: unknown };
    restoreShared(this.#node, shared, this.#context);
    try {
      await this.iterator.restore(iterator);
    } catch (error) {
      this.iterator.dispose();
      throw error;
    }
  }
}

/** @throws {ReadingFailure} `failed_precondition` if `node` reads from a service in no fixed order. */
function requireOneOrder(node: DatasetNode, { stats: { operator } }: IteratorContext): void {
  const service = unorderedService(node);
  if (service === undefined) return;
  throw new ReadingFailure(
    new LeatError(
      "failed_precondition",
      `${operator}: a dataset that the function made reads from a service (${service.kind}), which may give each ` +
        "process other elements, or another order. But the elements of this pipeline are divided or counted by " +
        'number. Distribute that dataset with "DETERMINISTIC" and no jobName. If one Python program without ' +
        "consumer= reads everything, withOptions({ deterministic: false }) after the last operator is enough",
    ),
  );
}

/** The graph of a dataset that a function made: `invalid_argument` unless it is one. */
export function nodeMadeBy(made: unknown, context: IteratorContext): DatasetNode {
  const node = nodeOf(made);
  if (node !== undefined) return node;
  throw context.stats.failed(
    new LeatError(
      "invalid_argument",
      `${context.stats.operator}: the function must return a Dataset, got ${show(made)}`,
    ),
  );
}

export interface OpenedState {
  readonly index: number;
  readonly outer: unknown;
  readonly nested: unknown;
}

/** A dataset that a function made from one element of the operator's input, while it is read. */
export class Opened {
  /** The number of the call that made it. */
  readonly #index: number;
  readonly #outer: HeldElements;
  readonly #nested: Nested;

  /** `outer`: the argument of the call. Errors as `Nested.madeBy`. */
  constructor(
    call: Call,
    index: number,
    outer: HeldElements,
    made: unknown,
    context: IteratorContext,
  ) {
    this.#nested = Nested.madeBy(call, index, made, context);
    this.#index = index;
    this.#outer = outer;
  }

  get iterator(): ElementIterator {
    return this.#nested.iterator;
  }

  async save(): Promise<OpenedState> {
    return { index: this.#index, outer: saveHeld(this.#outer), nested: await this.#nested.save() };
  }

  /** Calls the function on its element again, with the same random state, and resumes reading. */
  static async restore(
    state: OpenedState,
    call: Call,
    input: ElementIterator,
    context: IteratorContext,
  ): Promise<Opened> {
    const { index, outer, nested } = wholeState(state);
    const held = await restoreHeld(outer, input);
    const made = await call.again(index, argumentOf(held));
    const opened = new Opened(call, index, held, made, context);
    await opened.#nested.restore(nested);
    return opened;
  }
}
