/**
 * What operators with one input have in common.
 */
import type { IteratorContext } from "../context.ts";
import { ElementIterator, type END } from "../iterator.ts";
import { DatasetNode } from "../node.ts";
import type { OperatorStats } from "../stats.ts";

/** The node of an operator with one input. */
export abstract class UnaryNode extends DatasetNode {
  constructor(kind: string, input: DatasetNode) {
    super(kind, [input]);
  }

  protected get input(): DatasetNode {
    return this.inputs[0]!;
  }
}

/** The iterator of an operator with one input. */
export abstract class UnaryIterator extends ElementIterator {
  protected readonly context: IteratorContext;
  protected readonly stats: OperatorStats;
  protected readonly input: ElementIterator;

  constructor(context: IteratorContext) {
    super();
    this.context = context;
    this.stats = context.stats;
    this.input = context.makeInput();
  }

  /** Waits for the input, and counts how long. */
  protected async arrival(pending: Promise<unknown>): Promise<unknown | typeof END> {
    const startedAtMs = this.context.host.nowMs();
    try {
      return await pending;
    } finally {
      this.stats.waitMs += this.context.host.nowMs() - startedAtMs;
    }
  }

  protected override release(): void {
    this.input.dispose();
  }
}
