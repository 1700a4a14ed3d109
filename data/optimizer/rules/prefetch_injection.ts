/** Rule `prefetchInjection`: a pipeline without `prefetch` at its end gets one. */
import type { SavedOutcome } from "../../elements/answer.ts";
import type { IteratorContext } from "../../context.ts";
import type { ElementIterator } from "../../iterator.ts";
import type { DatasetNode } from "../../node.ts";
import { PrefetchIterator, PrefetchNode, type PrefetchState } from "../../operators/prefetch.ts";
import { AUTOTUNE } from "../../parallelism.ts";
import { isTransparent, nameOf, type Rule } from "../rule.ts";

/** Whether the last operator does not read ahead already. */
function mayPrefetch(last: DatasetNode): boolean {
  if (last.isSetting) return mayPrefetch(last.inputs[0]!);
  return last.adviceFacts.readsAhead !== true && last.division !== "served";
}

export const prefetchInjection: Rule = {
  name: "prefetchInjection",
  describe(site) {
    if (!site.isLast || isTransparent(site.node) || !mayPrefetch(site.node)) return;
    return `prefetch(AUTOTUNE) runs after ${nameOf(site)}: so elements are made while the ` +
      "consumer works.";
  },
};

/** The iterator of a pipeline's last operator, and what it has read ahead. */
export interface LastIterator {
  readonly elements: ElementIterator;
  save(): Promise<{ readonly state: unknown; readonly ahead?: readonly SavedOutcome[] }>;
  restore(state: unknown): Promise<void>;
}

/**
 * Makes the iterator of the last operator and, if the rule adds it, of a `prefetch` after it. Elements
 * read ahead are saved apart from the state, so that a pipeline without the rule can restore both.
 * `ahead`: the saved elements.
 */
export function openLast(
  context: IteratorContext,
  last: DatasetNode,
  { injects, ahead = [] }: { injects: boolean; ahead?: readonly SavedOutcome[] | undefined },
): LastIterator {
  const prefetches = injects && mayPrefetch(last);
  if (!prefetches && ahead.length === 0) {
    const elements = context.makeIterator();
    return {
      elements,
      save: async () => ({ state: await elements.save() }),
      restore: (state) => elements.restore(state),
    };
  }
  const size = prefetches ? AUTOTUNE : 0;
  const elements = new PrefetchIterator(context.after(new PrefetchNode(last, size)), size);
  return {
    elements,
    async save() {
      const { buffer, input } = await elements.save() as PrefetchState;
      return buffer.length === 0 ? { state: input } : { state: input, ahead: buffer };
    },
    restore: (state) => elements.restore({ buffer: ahead, input: state }),
  };
}
