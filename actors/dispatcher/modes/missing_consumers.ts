/** Explains which missing consumers block the others, so that people know what to start. */
import type { Iteration } from "../state/entities.ts";
import { awaitedCount, awaitedOf } from "./deterministic/consumers_state.ts";
import { listed } from "./deterministic/places.ts";
import { parametersOf } from "../jobs/iterations.ts";
import { isHeldUp } from "./deterministic/ordered.ts";
import { consumersText, indices } from "./coordinated/round_places.ts";
import type { DispatcherState } from "../state/state.ts";

/** With more consumers, the text only counts the joined ones: each client heartbeat computes it. */
const CONSUMERS_LISTED_MAX = 1_024;

/** Why coordinated reads have not started: they start when all consumers have joined. */
export function whyNotBegun(state: DispatcherState, iteration: Iteration): string | null {
  const { iterationId, rounds, finished } = iteration;
  const { numConsumers } = parametersOf(state, iteration);
  const index = state.roundIndexOf(iterationId);
  if (numConsumers === undefined || index === undefined) return null;
  const clients = state.clientsOfIteration(iterationId);
  const isWaiting = index.started === 0 && clients.size < numConsumers;
  if (!isWaiting || finished || rounds.ended !== null) return null;
  if (numConsumers > CONSUMERS_LISTED_MAX) {
    return `Its consumers begin together, and ${clients.size} of ${numConsumers} have joined.`;
  }
  const joined = new Set([...clients].map(({ consumerIndex }) => consumerIndex));
  const missing = indices(numConsumers).filter((consumer) => !joined.has(consumer));
  return `Its consumers begin together, and ${consumersText(missing)} of ${numConsumers} ` +
    `${missing.length === 1 ? "has" : "have"} not joined.${elsewhere(state, iteration, missing)}`;
}

/**
 * Why consumers that have joined wait: they have read `windowSplits` beyond the common position.
 */
export function whyHeldUp(
  state: DispatcherState,
  iteration: Iteration,
  windowSplits: number,
): string | null {
  const consumers = iteration.ordered?.consumers;
  if (consumers == null || iteration.finished || !isHeldUp(iteration, windowSplits)) return null;
  const { count } = consumers;
  const awaited = awaitedCount(consumers);
  if (awaited === 0) return null;
  if (count > CONSUMERS_LISTED_MAX) {
    return `${count - awaited} of ${count} consumers have joined, ` +
      "and no more splits are assigned before the others join.";
  }
  const missing = listed(awaitedOf(consumers));
  const [has, join] = missing.length === 1 ? ["has", "it joins"] : ["have", "they join"];
  return `${
    capital(consumersText(missing))
  } of ${count} ${has} not joined, and no more splits are ` +
    `assigned before ${join}.${elsewhere(state, iteration, missing)}`;
}

/** Sentences about missing consumers that read another repetition. */
function elsewhere(
  state: DispatcherState,
  { jobId, repetition }: Iteration,
  consumers: readonly number[],
): string {
  const missing = new Set(consumers);
  return state.iterationsOfJob(jobId).map((other) => {
    const reading = [...state.clientsOfIteration(other.iterationId)]
      .map(({ consumerIndex }) => consumerIndex!)
      .filter((consumer) => missing.has(consumer))
      .toSorted((a, b) => a - b);
    if (reading.length === 0) return "";
    const verb = reading.length === 1 ? "is" : "are";
    return ` ${
      capital(consumersText(reading))
    } ${verb} in repetition ${other.repetition}, and not in ` +
      `this one, ${repetition}.`;
  }).join("");
}

function capital(text: string): string {
  return text[0]!.toUpperCase() + text.slice(1);
}
