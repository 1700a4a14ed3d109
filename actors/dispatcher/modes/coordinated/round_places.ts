/** Coordinated reads for people: the round of each consumer, and what it waits for. */
import type { Iteration } from "../../state/entities.ts";
import { parametersOf } from "../../jobs/iterations.ts";
import type { ConsumerPosition, RoundsDescription } from "../../protocol_figures.ts";
import type { DispatcherState } from "../../state/state.ts";

/** A sentence names at most this many consumers, and counts the rest. */
const NAMED_MAX = 5;
/** A description lists at most this many missing consumers, and counts the rest. */
const MISSING_MAX = 16;

interface Consumer extends ConsumerPosition {
  readonly consumerIndex: number;
}

/** The progress of consumers. `positionOf`: a client's last reported position. */
export function describeRounds(
  state: DispatcherState,
  iteration: Iteration,
  positionOf: (clientId: number) => ConsumerPosition | undefined,
): RoundsDescription {
  const { numConsumers = 0 } = parametersOf(state, iteration);
  const clients = [...state.clientsOfIteration(iteration.iterationId)];
  const present = new Set(clients.map(({ consumerIndex }) => consumerIndex));
  const missingCount = numConsumers - present.size;
  const missing = firstMissing(numConsumers, present);
  const consumers = clients.flatMap(({ clientId, consumerIndex }): Consumer[] => {
    const position = positionOf(clientId);
    return consumerIndex === null || position === undefined ? [] : [{ consumerIndex, ...position }];
  });
  const { proposal } = iteration.rounds;
  const index = state.roundIndexOf(iteration.iterationId);
  const awaited = clients.filter(({ clientId }) => index?.awaited.has(clientId))
    .map(({ consumerIndex }) => consumerIndex!);
  const rounds = consumers.map(({ round }) => round);
  const lines = [
    ...(missing.length === 0
      ? []
      : [`Missing: ${consumersText(missing, missingCount)} of ${numConsumers}.`]),
    ...(awaited.length === 0 ? [] : [agreeing(proposal!.schedule.fromRound, awaited)]),
    ...waits(state, iteration, consumers),
  ];
  return {
    lowest: rounds.length === 0 ? null : Math.min(...rounds),
    highest: rounds.length === 0 ? null : Math.max(...rounds),
    missing,
    missingCount,
    agreeing: awaited.length === 0 ? null : { fromRound: proposal!.schedule.fromRound, awaited },
    text: lines.length === 0 ? "Nobody waits." : lines.join(" "),
  };
}

function agreeing(fromRound: number, awaited: readonly number[]): string {
  return `The schedule from round ${fromRound} on waits for ${consumersText(awaited)} to agree.`;
}

function waits(
  state: DispatcherState,
  iteration: Iteration,
  consumers: readonly Consumer[],
): string[] {
  const byRound = Map.groupBy(consumers, ({ round }) => round);
  const last = slowest(byRound);
  return [...byRound].toSorted(([a], [b]) => a - b)
    .flatMap(([round, here]) => {
      const waiting = (kind: Consumer["waitsFor"]) =>
        here.filter(({ waitsFor }) => waitsFor === kind).map(({ consumerIndex }) => consumerIndex);
      const sentence = (who: readonly number[], what: string) =>
        who.length === 0
          ? []
          : [`For round ${round} ${consumersText(who)} wait${s(who)} for ${what}.`];
      return [
        ...sentence(waiting("worker"), workerOf(state, iteration, round)),
        ...sentence(waiting("consumers"), slower(last, round)),
        ...sentence(waiting("schedule"), "a worker, or for all to agree on one"),
      ];
    });
}

function workerOf(state: DispatcherState, { rounds }: Iteration, round: number): string {
  const schedule = rounds.schedules.findLast(({ fromRound }) => fromRound <= round);
  const taskId = schedule?.taskIds[round % schedule.taskIds.length];
  const worker = taskId === undefined ? undefined : state.tasks.get(taskId)?.worker;
  return worker === undefined ? "a worker" : `worker "${worker}"`;
}

interface Slowest {
  readonly lowest: number;
  readonly indices: readonly number[];
}

/** The consumers at the lowest round that wait for no other consumer. */
function slowest(byRound: ReadonlyMap<number, readonly Consumer[]>): Slowest {
  const lowest = Math.min(...byRound.keys());
  const indices = (byRound.get(lowest) ?? [])
    .filter(({ waitsFor }) => waitsFor !== "consumers")
    .map(({ consumerIndex }) => consumerIndex);
  return { lowest, indices };
}

/** The slowest consumers in words, for others that wait for them. */
function slower({ lowest, indices }: Slowest, round: number): string {
  if (indices.length === 0) return "others, which do not hold it yet";
  return `${consumersText(indices)}, which ${
    indices.length === 1 ? "is" : "are"
  } at round ${lowest}` +
    (lowest === round ? ", too" : "");
}

/** The first missing consumers. Stops early, because a job may be declared to have very many. */
function firstMissing(numConsumers: number, present: ReadonlySet<number | null>): number[] {
  const missing: number[] = [];
  for (let index = 0; index < numConsumers && missing.length < MISSING_MAX; index++) {
    if (!present.has(index)) missing.push(index);
  }
  return missing;
}

/** Consumers in words. @param count How many there are; `indices` may have only the first. */
export function consumersText(indices: readonly number[], count = indices.length): string {
  const shown = indices.slice(0, NAMED_MAX).join(", ");
  const more = count - NAMED_MAX;
  return `consumer${count === 1 ? "" : "s"} ` +
    `${shown}${more > 0 ? ` and ${more} more` : ""}`;
}

/** The verb ending for one consumer. */
function s(indices: readonly number[]): string {
  return indices.length === 1 ? "s" : "";
}

export function indices(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}
