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

/** A state, and the numbers of its node in pre-order: one for each way that leads to the node. */
type SavedShared = readonly [numbers: readonly number[], state: unknown];

/**
 * The shared states of a graph's nodes, each once. Nodes without one are left out.
 *
 * @param context The context of the graph's last operator.
 */
export function saveShared(root: DatasetNode, context: IteratorContext): unknown {
  const states: SavedShared[] = [];
  for (const [shared, numbers] of sharedIn(root)) {
    const state = shared.save(context);
    if (state !== undefined) states.push([numbers, state]);
  }
  return states;
}

/**
 * Restores what `saveShared` returned of an equal graph. In an equal graph a node of the saved one may
 * be several, as after deserialisation, or the other way round: so each of its numbers finds the state.
 */
export function restoreShared(root: DatasetNode, states: unknown, context: IteratorContext): void {
  const byNumber = new Map(
    (states as SavedShared[]).flatMap(([numbers, state]) => numbers.map((at) => [at, state])),
  );
  for (const [shared, [number]] of sharedIn(root)) {
    context.overwrites(shared.keep());
    const state = byNumber.get(number!);
    if (state !== undefined) shared.restore(wholeState(state), context);
  }
}

/** What nodes share, with the numbers of each node, in the order of the first ones. */
function sharedIn(root: DatasetNode): Map<Shared, number[]> {
  const found = new Map<Shared, number[]>();
  let numbers = 0;
  const enter = ({ shared, inputs }: DatasetNode) => {
    const number = numbers++;
    if (shared !== undefined) found.getOrInsertComputed(shared, () => []).push(number);
    inputs.forEach(enter);
  };
  enter(root);
  return found;
}
