/**
 * What the iterators of a node share beyond each one's own state, such as the contents of a cache,
 * and how it is saved beside them: for a whole graph at once.
 */
import type { DatasetNode } from "./node.ts";
import { wholeState } from "./whole_state.ts";

/** The shared states of a graph's nodes, by their numbers in pre-order; nodes without one are left out. */
export function saveShared(root: DatasetNode): unknown {
  const states: [number, unknown][] = [];
  visit(root, (node, number) => {
    const state = node.saveShared();
    if (state !== undefined) states.push([number, state]);
  });
  return states;
}

/** Gives the nodes of an equal graph what `saveShared` was answered. */
export function restoreShared(root: DatasetNode, states: unknown): void {
  const byNumber = new Map(states as [number, unknown][]);
  if (byNumber.size === 0) return;
  visit(root, (node, number) => {
    const state = byNumber.get(number);
    if (state !== undefined) node.restoreShared(wholeState(state));
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
