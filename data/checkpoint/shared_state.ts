/** State that the iterators of a node share, such as a cache. It is saved for a whole graph at once. */
import type { IteratorContext } from "../context.ts";
import type { DatasetNode } from "../node.ts";
import { wholeState } from "./whole_state.ts";

/** The state that the iterators of one node share. */
export interface Shared {
  /** Returns the state as plain data and elements; `undefined` for none. */
  save(context: IteratorContext): unknown;
  /** Restores the saved state of an equal node. */
  restore(state: unknown, context: IteratorContext): void;
  /** Returns a function that undoes later changes. */
  keep(): () => void;
}

/**
 * The shared states of a graph's nodes, by their numbers in pre-order. Nodes without one are left out.
 *
 * @param context The context of the graph's last operator.
 */
export function saveShared(root: DatasetNode, context: IteratorContext): unknown {
  const states: [number, unknown][] = [];
  visit(root, ({ shared }, number) => {
    const state = shared?.save(context);
    if (state !== undefined) states.push([number, state]);
  });
  return states;
}

/** Restores what `saveShared` returned of an equal graph. */
export function restoreShared(root: DatasetNode, states: unknown, context: IteratorContext): void {
  const byNumber = new Map(states as [number, unknown][]);
  visit(root, ({ shared }, number) => {
    if (shared === undefined) return;
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
