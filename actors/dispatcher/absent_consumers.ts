/**
 * Coordinated reads: the consumers that nobody waits for in some rounds.
 *
 * @module
 */
import type { AnswerOf } from "../runtime/protocol.ts";
import type { Client, Iteration } from "./entities.ts";
import { parametersOf } from "./iterations.ts";
import type { DispatcherProtocol } from "./protocol.ts";
import type { DispatcherState } from "./state.ts";

type Absent = NonNullable<AnswerOf<DispatcherProtocol, "clientHeartbeat">["absent"]>;

/**
 * Those that are gone, and those that began later than this client, which take no part before their
 * first round.
 */
export function absentConsumers(
  state: DispatcherState,
  { firstVersion: ownVersion }: Client,
  iteration: Iteration,
): Absent {
  if (ownVersion === null) return [];
  const { numConsumers = 0 } = parametersOf(state, iteration);
  const later: Absent[number][] = [];
  const present = new Set<number>();
  for (const { consumerIndex, firstVersion } of state.clientsOfIteration(iteration.iterationId)) {
    if (consumerIndex === null || firstVersion === null) continue;
    present.add(consumerIndex);
    if (firstVersion <= ownVersion) continue;
    const first = iteration.rounds.schedules.find(({ version }) => version === firstVersion);
    // A schedule is kept for as long as rounds from before it may be read.
    if (first !== undefined) later.push({ consumerIndex, beforeRound: first.fromRound });
  }
  if (present.size === numConsumers) return later;
  const gone = Array.from({ length: numConsumers }, (_, index) => index)
    .filter((index) => !present.has(index));
  return [...later, ...gone.map((consumerIndex) => ({ consumerIndex, beforeRound: null }))];
}
