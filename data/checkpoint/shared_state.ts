/**
 * What the iterators of a node share beyond each one's own state, such as the contents of a cache,
 * and how it is saved beside them: for a whole graph at once.
 */
import type { IteratorContext } from "../context.ts";
import type { DatasetNode } from "../node.ts";
import { wholeState } from "./whole_state.ts";

/** What the iterators of one node share. */
export interface Shared {
  /** As plain data and elements, for an iteration in this context; `undefined` for nothing. */
  save(context: IteratorContext): unknown;
  /** Takes over what that of an equal node answered to `save()`. */
  restore(state: unknown, context: IteratorContext): void;
  /** Answers what puts back what it is now. */
  keep(): () => void;
}

/**
 * The shared states of a graph's nodes, by their numbers in pre-order; nodes without one are left out.
 *
 * @param context that of the graph's last operator.
 */
export function saveShared(root: DatasetNode, context: IteratorContext): unknown {
  const states: [number, unknown][] = [];
  visit(root, ({ shared }, number) => {
    const state = shared?.save(context);
    if (state !== undefined) states.push([number, state]);
  });
  return states;
}

/** Gives the nodes of an equal graph what `saveShared` was answered. */
export function restoreShared(root: DatasetNode, states: unknown, context: IteratorContext): void {
  const byNumber = new Map(states as [number, unknown][]);
  visit(root, ({ shared }, number) => {
    if (shared === undefined) return;
    // Also where nothing was saved: iterators may give it what an earlier version saved with them.
    context.overwrites(shared.keep());
    const state = byNumber.get(number);
    if (state !== undefined) shared.restore(wholeState(state), context);
  });
}

function visit(root: DatasetNode, fn: (node: DatasetNode, number: number) => void): void {
  let numbers = 0;
  const enter = (node: DatasetNode) => {
    fn(node, numbers++);
    node.inputs.forEach(enter);
  };
  enter(root);
}
