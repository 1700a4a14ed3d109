/**
 * Coordinated reads: the consumers without which nobody is given a round, told so that whoever reads it
 * knows what to start.
 *
 * @module
 */
import type { Iteration } from "./entities.ts";
import { parametersOf } from "./iterations.ts";
import { indices, named } from "./round_places.ts";
import type { DispatcherState } from "./state.ts";

/** With more of them it is said how many have come, but not who: each heartbeat of a client asks. */
const CONSUMERS_LOOKED_AT_MAX = 1_024;

/** A sentence or two about the consumers that are missing; null when all have come, or reading has begun. */
export function whyNotBegun(state: DispatcherState, iteration: Iteration): string | null {
  const { iterationId, jobId, finished, rounds } = iteration;
  const { numConsumers } = parametersOf(state, iteration);
  const index = state.roundIndexOf(iterationId);
  if (numConsumers === undefined || index === undefined) return null;
  const clients = state.clientsOfIteration(iterationId);
  const isWaiting = index.started === 0 && clients.size < numConsumers;
  if (!isWaiting || finished || rounds.ended !== null) return null;
  if (numConsumers > CONSUMERS_LOOKED_AT_MAX) {
    return `Its consumers begin together, and ${clients.size} of ${numConsumers} have come.`;
  }
  const there = new Set([...clients].map(({ consumerIndex }) => consumerIndex));
  const missing = new Set(indices(numConsumers).filter((consumer) => !there.has(consumer)));
  const elsewhere = state.iterationsOfJob(jobId).flatMap((other) => {
    const reading = [...state.clientsOfIteration(other.iterationId)]
      .map(({ consumerIndex }) => consumerIndex!)
      .filter((consumer) => missing.has(consumer))
      .toSorted((a, b) => a - b);
    if (reading.length === 0) return [];
    const [verb, epoch] = [reading.length === 1 ? "is" : "are", other.repetition];
    return [
      ` ${capital(named(reading))} ${verb} in repetition ${epoch}, and not in this one, ` +
      `${iteration.repetition}.`,
    ];
  });
  return `Its consumers begin together, and ${named([...missing])} of ${numConsumers} ` +
    `${missing.size === 1 ? "has" : "have"} not come.${elsewhere.join("")}`;
}

function capital(text: string): string {
  return text[0]!.toUpperCase() + text.slice(1);
}
