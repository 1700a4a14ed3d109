/**
 * Stepping, for iterators that may have to pull many elements before they can give one: they yield the
 * thread in between, and stop when they are disposed.
 */
import { END, type Pulled } from "../iterator.ts";
import type { Pacer } from "./pacer.ts";

/** The result of a step that has nothing to give yet. */
export const AGAIN: unique symbol = Symbol("AGAIN");

/** An iterator that advances in steps. */
export interface Stepping {
  readonly disposed: boolean;
  /** One pull and its processing: an element, `END`, `AGAIN`, or a promise of these. */
  step(): unknown;
}

/** Steps until there is something to give. A promise if a step waits, or the time slice is over. */
export function stepOn(iterator: Stepping, pacer: Pacer): Pulled<unknown> {
  for (;;) {
    const result = iterator.step();
    if (result instanceof Promise) return stepLater(iterator, pacer, result);
    if (result !== AGAIN) return result;
    if (pacer.due()) return stepLater(iterator, pacer, yieldOnce(pacer));
  }
}

/**
 * Continues stepping once `pending` has settled. A loop and not a chain of promises, because a
 * predicate may refuse a million elements in a row.
 */
async function stepLater(
  iterator: Stepping,
  pacer: Pacer,
  pending: Promise<unknown>,
): Promise<unknown> {
  let result = await pending;
  while (result === AGAIN && !iterator.disposed) {
    if (pacer.due()) {
      await pacer.yield();
      continue;
    }
    const step = iterator.step();
    result = step instanceof Promise ? await step : step;
  }
  return iterator.disposed ? END : result;
}

/** Yields to the event loop once; then the iterator continues. */
export async function yieldOnce(pacer: Pacer): Promise<typeof AGAIN> {
  await pacer.yield();
  return AGAIN;
}
