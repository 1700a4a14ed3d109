/** The consumers that share a DETERMINISTIC stream. */
import { definedFields } from "../../../../core/tree.ts";
import { between, common as commonOf, count, has, type Places, union, without } from "./places.ts";
import type { OrderedConsumer, OrderedConsumers, StreamPass } from "../mode_state.ts";

/** `awaited`: the consumer has not joined yet. */
export type ConsumerState = "awaited" | "reading" | "left";

/**
 * The state before any consumer has joined. @param mark Where consumers without a position start.
 */
export function noConsumers(
  numConsumers: number,
  mark: number,
  pass: StreamPass | undefined,
): OrderedConsumers {
  return { count: numConsumers, mark, reading: {}, left: [], ...definedFields({ pass }) };
}

export function stateOf({ reading, left }: OrderedConsumers, index: number): ConsumerState {
  if (reading[index] !== undefined) return "reading";
  return has(left, index) ? "left" : "awaited";
}

export function addConsumer(consumers: OrderedConsumers, index: number, at: OrderedConsumer): void {
  consumers.reading[index] = at;
  consumers.left = without(consumers.left, [index]);
}

/** @param indices Ascending. */
export function removeConsumers(consumers: OrderedConsumers, indices: readonly number[]): void {
  for (const index of indices) delete consumers.reading[index];
  consumers.left = union(consumers.left, indices);
}

export function awaitedCount({ count: all, reading, left }: OrderedConsumers): number {
  return all - Object.keys(reading).length - count(left);
}

export function awaitedOf({ count: all, reading, left }: OrderedConsumers): Places {
  return without(without(between(0, all), left), Object.keys(reading).map(Number));
}

/** The splits that all consumers have, except those that left; undefined if all have left. */
export function commonPlaces(consumers: OrderedConsumers): OrderedConsumer | undefined {
  const present = Object.values(consumers.reading);
  if (awaitedCount(consumers) > 0) present.push({ mark: consumers.mark, done: [] });
  if (present.length === 0) return undefined;
  // Common splits beyond the lowest mark are among `done` of the consumer with that mark.
  const slowest = present.reduce((lowest, other) => other.mark < lowest.mark ? other : lowest);
  const { mark } = slowest;
  let done = without(slowest.done, between(0, mark + 1));
  for (const each of present) {
    if (done.length === 0) break;
    if (each !== slowest) done = commonOf(done, union(between(0, each.mark), each.done));
  }
  return { mark, done };
}
