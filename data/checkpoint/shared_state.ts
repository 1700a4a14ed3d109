/** State that the iterators of a node share, such as a cache. It is saved for a whole graph at once. */
import { RandomStream } from "../../core/philox.ts";
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
 * A state, and the numbers of its node in pre-order: one for each way that leads to the node. Nodes that
 * the signature leaves out have no number.
 */
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
  const enter = ({ shared, inputs, isLeftOutOfCheckpoints }: DatasetNode) => {
    if (shared !== undefined) found.getOrInsertComputed(shared, () => []).push(numbers);
    if (!isLeftOutOfCheckpoints) numbers++;
    inputs.forEach(enter);
  };
  enter(root);
  return found;
}

/** The graphs that the iterators of a node run in its place. They share each, and so its caches. */
export class SharedGraphs implements Shared {
  /** Never replaced: iterators that run a graph save what it shares. */
  readonly #graphs = new Map<string, MadeGraph>();
  /** The restored states of graphs that are not made yet. */
  #restored = new Map<string, unknown>();

  /** @param key Tells the graph from the node's others, such as those with other seeds. */
  of(key: string, context: IteratorContext, make: () => DatasetNode): DatasetNode {
    return this.#graphs.getOrInsertComputed(key, () => {
      const graph = make();
      const within = contextOf(graph, context);
      const empty = saveShared(graph, within);
      const state = this.#restored.get(key);
      if (state !== undefined) restoreShared(graph, state, within);
      this.#restored.delete(key);
      return { graph, empty };
    }).graph;
  }

  /** `undefined` if the graphs have nothing to save. */
  save(context: IteratorContext): unknown {
    const made = [...this.#graphs].map(([key, { graph }]) =>
      [key, saveShared(graph, contextOf(graph, context)) as unknown[]] as const
    ).filter(([, states]) => states.length > 0);
    const saved = [...this.#restored, ...made];
    return saved.length === 0 && this.#graphs.size > 0 ? undefined : saved;
  }

  restore(state: unknown, context: IteratorContext): void {
    const restored = new Map(state as [string, unknown][]);
    for (const [key, { graph, empty }] of this.#graphs) {
      restoreShared(graph, restored.get(key) ?? empty, contextOf(graph, context));
      restored.delete(key);
    }
    this.#restored = restored;
  }

  keep(): () => void {
    const restored = new Map(this.#restored);
    return () => this.#restored = restored;
  }
}

interface MadeGraph {
  readonly graph: DatasetNode;
  /** Its shared states before anything was read. */
  readonly empty: unknown;
}

/** The graph always has a seed, so shared states draw no numbers here. */
function contextOf(graph: DatasetNode, context: IteratorContext): IteratorContext {
  return context.instead(graph, new RandomStream(0n), 0);
}
