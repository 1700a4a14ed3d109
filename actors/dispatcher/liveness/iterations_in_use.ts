/** Which iterations are in use. Jobs that only read each other are not. */
import type { DispatcherState } from "../state/state.ts";

/**
 * The iterations that a program reads, that continue without clients, or that are read by a task of
 * an iteration in use.
 */
export function iterationsInUse(state: DispatcherState): ReadonlySet<number> {
  const inUse = new Set<number>();
  const readings = new Map<number, number[]>();
  for (const iteration of state.iterations.values()) {
    if (state.modeOf(iteration).whenUnread(iteration) === "continues") {
      inUse.add(iteration.iterationId);
    }
  }
  for (const { iterationId, readBy } of state.clients.values()) {
    if (readBy === null) inUse.add(iterationId);
    else readings.getOrInsertComputed(readBy, () => []).push(iterationId);
  }
  // The loop also visits what it adds.
  for (const reader of inUse) for (const read of readings.get(reader) ?? []) inUse.add(read);
  return inUse;
}
