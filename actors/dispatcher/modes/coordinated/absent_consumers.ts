/** Coordinated reads: the consumers that others need not wait for in some rounds. */
import type { Client, Iteration } from "../../state/entities.ts";
import { parametersOf } from "../../jobs/iterations.ts";
import type { RoundsNews } from "../../protocol_heartbeats.ts";
import type { DispatcherState } from "../../state/state.ts";

type Absent = RoundsNews["absent"];

/** Consumers that have left, and those that joined after this client, until their first round. */
export function absentConsumers(
  state: DispatcherState,
  { firstVersion: ownVersion }: Client,
  iteration: Iteration,
): Absent {
  const index = state.roundIndexOf(iteration.iterationId);
  if (ownVersion === null || index === undefined) return [];
  const { numConsumers = 0 } = parametersOf(state, iteration);
  const later: Absent[number][] = [];
  for (const [firstVersion, clients] of index.startedWith) {
    if (firstVersion <= ownVersion) continue;
    const first = iteration.rounds.schedules.find(({ version }) => version === firstVersion);
    // A schedule is kept while rounds before it may still be read.
    if (first === undefined) continue;
    for (const { consumerIndex } of clients) {
      later.push({ consumerIndex: consumerIndex!, beforeRound: first.fromRound });
    }
  }
  if (index.started === numConsumers) return later;
  const present = new Set(
    [...index.startedWith.values()].flatMap((clients) =>
      [...clients].map(({ consumerIndex }) => consumerIndex)
    ),
  );
  const gone = Array.from({ length: numConsumers }, (_, index) => index)
    .filter((index) => !present.has(index));
  return [...later, ...gone.map((consumerIndex) => ({ consumerIndex, beforeRound: null }))];
}
