/**
 * Coordinated reads (paper section 3.6): all consumers agree on which task serves a round.
 *
 * A list of schedules is in force; round r is served by the newest one that starts at or before r.
 * When tasks come or go, or a consumer joins, a new schedule is *proposed* from a round that no
 * consumer is known to have requested. A consumer that *accepts* requests nothing from that round
 * on until the schedule is *committed*, which happens when all have accepted. So all consumers
 * request a round under the same schedule. A consumer that is already past that round does not
 * accept: the schedule is proposed again, twice as far ahead, until all can accept.
 *
 * Lost tasks block no consumer: a commit replaces them in the older schedules with serving tasks. A
 * consumer that accepts a schedule reports which rounds it holds of tasks outside the schedule, and
 * fetches nothing more from those tasks. Rounds that all consumers hold are kept. Each other round
 * of the lost tasks is produced again, by one task for all consumers. No training loop has received
 * such a round, because none gets a round before all consumers hold it. So all consumers stay in
 * step, with batches of one task in each round.
 *
 * If no task is left and none will come, the consumers accept an empty schedule, and all end at its
 * first round. If a task reaches its end, all consumers hold the end round and report it. Either
 * way the end is journaled before any training loop gets it, so consumers that join later get it,
 * too, and wait for nobody.
 *
 * A consumer starts at the first schedule committed after it joined. A crashed consumer may have
 * requested more rounds than all others, and the first ones beyond its start. It is never further
 * than it reads ahead. The next schedule begins that many rounds after all these, and later ones
 * after that, so that a restarted consumer requests no round that its former client was given. If
 * all consumers are new (the job was restarted), none has to accept, and they start together far
 * beyond any earlier round. A consumer that has left blocks no other. One that stops responding
 * blocks the others until it times out.
 */
import { LeatError } from "../../../../core/error.ts";
import type { Client, Iteration } from "../../state/entities.ts";
import type { Proposal, RoundSchedules } from "../mode_state.ts";
import type { Consumers } from "../consumers.ts";
import type { RoundsReport } from "../../protocol_heartbeats.ts";
import { createTask, endTask, finishIfDone, parametersOf } from "../../jobs/iterations.ts";
import type { RoundIndex } from "./round_index.ts";
import type { Transaction } from "../../transaction.ts";
import { ROUNDS_AHEAD_MAX } from "../../../worker/protocol.ts";

/** A restarted job starts this far ahead: more than is read between two journaled positions. */
const LEAP_ROUNDS = 2 ** 20;
/** The consumers' position is journaled each time it has advanced by this many rounds. */
const REACHED_STEP_ROUNDS = 2 ** 16;
/**
 * This many rounds behind the slowest consumer may be requested again. Older schedules are dropped.
 */
const ROUNDS_KEPT = 2 * ROUNDS_AHEAD_MAX;

/** A consumer may report at most this many held rounds of lost tasks. */
const HELD_ROUNDS_MAX = 2 * ROUNDS_AHEAD_MAX;

/** Half of the range of safe integers; no job reads so many rounds. */
const ROUNDS_MAX = 2 ** 52;

/** Handles a consumer's report; {@linkcode reviewRounds} then decides. */
export function handleRoundsReport(
  tx: Transaction,
  { clientId, iterationId }: Client,
  consumers: Consumers,
  report: RoundsReport,
  lostTaskTimeoutMs: number,
): void {
  const { state, nowMs } = tx;
  const { rounds } = state.iterations.get(iterationId)!;
  const { position, heldRounds = [], acceptedSchedule } = report;
  const { nextRound = 0, deliveredRound = 0 } = position ?? {};
  checkRounds(clientId, [nextRound, deliveredRound, ...heldRounds]);
  const lostTasks = lostTasksOf(state, iterationId, report);
  consumers.noteReport(clientId, { ...report, lostTasks }, nowMs);
  // The end round is the first one that the training loop has not received.
  if (position?.kind === "ended" && rounds.ended === null) {
    tx.append({ type: "rounds_ended", iterationId, round: deliveredRound });
  }
  if (nextRound >= rounds.reached + REACHED_STEP_ROUNDS) {
    tx.append({ type: "rounds_reached", iterationId, round: nextRound });
  }
  const { proposal } = rounds;
  const isAwaited = state.roundIndexOf(iterationId)!.awaited.has(clientId);
  if (proposal !== null && isAwaited && isPast(rounds, proposal, nextRound)) {
    consumers.notePassed(iterationId);
  } else if (proposal !== null && isAwaited && proposal.schedule.version === acceptedSchedule) {
    tx.append({
      type: "schedule_accepted",
      iterationId,
      version: proposal.schedule.version,
      clientId,
      deliveredRound,
      heldRounds: heldRounds.slice(0, HELD_ROUNDS_MAX),
    });
  }
  const clients = lostTasks.length === 0 ? [] : [...state.clientsOfIteration(iterationId)];
  for (const { taskId } of lostTasks) {
    if (consumers.isUnreachable(taskId, clients, nowMs, lostTaskTimeoutMs)) {
      replaceTask(tx, iterationId, taskId);
    }
  }
}

/** The reported tasks that belong to the iteration, each once: a report may name any numbers. */
function lostTasksOf(
  state: Transaction["state"],
  iterationId: number,
  { lostTasks = [] }: RoundsReport,
): NonNullable<RoundsReport["lostTasks"]> {
  const own = lostTasks.filter(({ taskId }) =>
    state.tasks.get(taskId)?.iterationId === iterationId
  );
  return [...new Map(own.map((lost) => [lost.taskId, lost])).values()];
}

/**
 * Whether a consumer with this next round is past the start of a proposal, or so near that a
 * consumer which vanished before may have been past it.
 */
function isPast({ vanished }: RoundSchedules, { schedule }: Proposal, nextRound: number): boolean {
  const mustClearVanished = vanished != null && schedule.version >= vanished.version;
  return nextRound + (mustClearVanished ? vanished.roundsAhead : 0) > schedule.fromRound;
}

/** Refuses rounds that are too large to count exactly. */
export function checkRounds(clientId: number, rounds: readonly number[]): void {
  const wrong = rounds.find((round) => round > ROUNDS_MAX);
  if (wrong === undefined) return;
  throw new LeatError(
    "invalid_argument",
    `Client ${clientId} reports round ${wrong}; rounds are integers up to ${ROUNDS_MAX}`,
  );
}

/**
 * Ends a task that consumers cannot reach. Its worker, if alive, gets a new task of the iteration.
 */
function replaceTask(tx: Transaction, iterationId: number, taskId: number): void {
  const { state } = tx;
  const task = state.tasks.get(taskId);
  if (task?.iterationId !== iterationId) return;
  endTask(tx, task, "unreachable");
  if (state.workers.get(task.worker)?.alive) {
    createTask(tx, state.iterations.get(iterationId)!, task.worker);
  }
  finishIfDone(tx, iterationId);
}

/** Proposes or commits a schedule if one is due. Scans all consumers only in that case. */
export function reviewRounds(tx: Transaction, iteration: Iteration, consumers: Consumers): void {
  const { state } = tx;
  const { iterationId } = iteration;
  const index = state.roundIndexOf(iterationId);
  if (index === undefined || iteration.rounds.ended !== null) return;
  const clients = state.clientsOfIteration(iterationId);
  if (clients.size === 0 || (index.serving === 0 && !iteration.finished)) return;
  if (index.started === 0 && index.serving === 0) {
    return tx.append({ type: "rounds_ended", iterationId, round: iteration.rounds.reached });
  }
  if (index.started === 0) return startTogether(tx, iteration, clients.size);
  if (!isDue(iteration, index) && !consumers.hasPassed(iterationId)) return;
  const started = [...clients].filter(({ firstVersion }) => firstVersion !== null);
  const nextRounds: number[] = [];
  for (const { clientId } of started) {
    const nextRound = consumers.nextRound(clientId);
    // After a dispatcher restart a consumer's round is unknown until its next heartbeat.
    if (nextRound === undefined) return;
    nextRounds.push(nextRound);
  }
  proposeIfNeeded(tx, iteration, index, { started, nextRounds });
  consumers.clearPassed(iterationId);
  const { proposal } = iteration.rounds;
  if (proposal === null || index.awaited.size > 0) return;
  const { version } = proposal.schedule;
  const oldestVersion = oldestWanted(iteration, Math.min(...nextRounds));
  const kept = keptRounds(proposal, started);
  tx.append({ type: "schedule_committed", iterationId, version, oldestVersion, kept });
  const { taskIds, fromRound } = proposal.schedule;
  if (taskIds.length === 0) tx.append({ type: "rounds_ended", iterationId, round: fromRound });
}

/** Whether there is a schedule to propose, or all consumers have accepted the proposal. */
function isDue({ rounds: { proposal } }: Iteration, index: RoundIndex): boolean {
  if (!index.isScheduled) return true;
  return proposal === null ? index.newcomers.size > 0 : index.awaited.size === 0;
}

/** Rounds of tasks outside the proposal that all consumers hold. */
function keptRounds({ acceptedBy, held }: Proposal, started: readonly Client[]): number[] {
  const indices = new Map(acceptedBy.map((clientId, index) => [clientId, index]));
  const heldByEach = started.map(({ clientId }) => held[indices.get(clientId)!]!);
  const rounds = new Set(heldByEach.flatMap((each) => each.rounds));
  return [...rounds].filter((round) =>
    heldByEach.every((each) => round < each.before || each.rounds.includes(round))
  );
}

/**
 * If all consumers are new and have joined, they start together, beyond every round read before.
 */
function startTogether(tx: Transaction, iteration: Iteration, clients: number): void {
  const { numConsumers } = parametersOf(tx.state, iteration);
  if (clients < (numConsumers ?? 0)) return;
  const { rounds, iterationId } = iteration;
  const { schedules, proposal, reached } = rounds;
  const newest = Math.max(
    reached,
    schedules.at(-1)?.fromRound ?? 0,
    proposal?.schedule.fromRound ?? 0,
  );
  const isFirst = schedules.length === 0 && newest === 0;
  const version = propose(tx, iteration, newest, isFirst ? 0 : LEAP_ROUNDS);
  tx.append({ type: "schedule_committed", iterationId, version, oldestVersion: version });
}

interface Situation {
  readonly started: readonly Client[];
  /** The next rounds of the consumers that have started, in the same order. */
  readonly nextRounds: readonly number[];
}

function proposeIfNeeded(
  tx: Transaction,
  iteration: Iteration,
  { awaited, isScheduled, newcomers }: RoundIndex,
  { started, nextRounds }: Situation,
): void {
  const { proposal, reached, vanished } = iteration.rounds;
  const newest = Math.max(reached, ...nextRounds);
  const distanceMin = 1 + (vanished?.roundsAhead ?? 0);
  if (proposal === null) {
    // New consumers wait for a schedule to start at.
    if (newcomers.size > 0 || !isScheduled) propose(tx, iteration, newest, distanceMin);
    return;
  }
  const { schedule, distance } = proposal;
  const passed = started.some(({ clientId }, i) =>
    awaited.has(clientId) && isPast(iteration.rounds, proposal, nextRounds[i]!)
  );
  // A newcomer must not start at a round that a vanished client of its index may have requested.
  const isTooNear = newcomers.size > 0 && schedule.version < (vanished?.version ?? 0);
  if (!passed && !isTooNear && isScheduled) return;
  propose(tx, iteration, newest, Math.max(passed ? 2 * distance : distance, distanceMin));
}

/** Proposes a schedule of the tasks that serve now. Returns its version. */
function propose(
  tx: Transaction,
  { iterationId, rounds }: Iteration,
  newest: number,
  distance: number,
): number {
  const version = rounds.lastVersion + 1;
  const index = tx.state.roundIndexOf(iterationId)!;
  tx.append({
    type: "schedule_changed",
    iterationId,
    version,
    fromRound: newest + distance,
    added: [...index.added],
    removed: [...index.removed],
    distance,
  });
  return version;
}

/** The version of the schedule that serves the oldest round that may still be requested. */
function oldestWanted({ rounds }: Iteration, nextRoundMin: number): number {
  const wanted = nextRoundMin - ROUNDS_KEPT;
  return rounds.schedules.findLast(({ fromRound }) => fromRound <= wanted)?.version ?? 0;
}
