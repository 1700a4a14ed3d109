/** The law of static optimisation: a pipeline gives the same with and without rules. */
import { openIterator } from "../../../data/dataset_iterator.ts";
import { RULE_NAMES, type RuleName, rulesOf } from "../../../data/optimizer/options.ts";
import type { Dataset, DatasetOptions, OptimizationRules } from "../../../mod.ts";
import { assertEquals } from "../../assert.ts";
import { outcomesOf } from "../lib/outcomes.ts";

export type Optimizations = DatasetOptions["optimizations"];

/** These rules and no others. */
export function only(names: readonly RuleName[]): OptimizationRules {
  return Object.fromEntries(RULE_NAMES.map((name) => [name, names.includes(name)]));
}

/** Rules with which operators below the last may give elements that nobody takes. */
const READING_AHEAD: readonly RuleName[] = [
  "mapParallelization",
  "prefetchInjection",
  "shuffleAndRepeatFusion",
];

function readsAhead(optimizations: Optimizations): boolean {
  const rules = rulesOf(optimizations);
  return READING_AHEAD.some((name) => rules.has(name));
}

/**
 * Elements, order, errors and figures are the same without rules, with all, and with each of
 * `pairs`: one is on when the iterator is saved after `at` elements, the other when it is restored.
 */
export async function assertRuleLaw(
  dataset: Dataset<unknown>,
  at: number,
  ...pairs: (readonly [Optimizations, Optimizations])[]
): Promise<void> {
  const open = (optimizations: Optimizations) =>
    openIterator(dataset.withOptions({ seed: 3, optimizations }).node);
  await using plain = open(false);
  const expected = await outcomesOf(plain);
  const all: readonly Optimizations[][] = [[true, false], [false, true], [undefined, undefined]];
  for (const [saving, restoring] of [...all, ...pairs]) {
    await using iterator = open(saving);
    const first = await outcomesOf(iterator, at);
    const state = await iterator.save();
    assertEquals([...first, ...await outcomesOf(iterator)], expected);
    const figures = (of: typeof iterator) =>
      of.stats().slice(0, readsAhead(saving) ? 1 : undefined)
        .map(({ elements, errors }) => [elements, errors]);
    assertEquals(figures(iterator), figures(plain));
    await using other = open(restoring);
    await other.restore(state);
    await using again = open(restoring);
    await again.restore(await other.save());
    assertEquals([...first, ...await outcomesOf(other)], expected);
    assertEquals([...first, ...await outcomesOf(again)], expected);
  }
}
