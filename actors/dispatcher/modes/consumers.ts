/** Coordinated reads: the consumers' last reports about their positions. */
import type { Client } from "../state/entities.ts";
import type { ConsumerPosition } from "../protocol_figures.ts";
import type { RoundsReport } from "../protocol_heartbeats.ts";
import { ROUNDS_AHEAD_MAX } from "../../worker/protocol.ts";

/** The consumers' last reports. Soft state: after a restart they report again. */
export class Consumers {
  readonly #nextRounds = new Map<number, number>();
  readonly #places = new Map<number, ConsumerPosition>();
  readonly #roundsAhead = new Map<number, number>();
  /** Per client, the tasks that it cannot reach, and since when. */
  readonly #lost = new Map<number, Map<number, number>>();
  /** Iterations where a consumer has not accepted the proposal and may be past its start. */
  readonly #passed = new Set<number>();

  nextRound(clientId: number): number | undefined {
    return this.#nextRounds.get(clientId);
  }

  /** The round that its training loop gets next, and what it waits for. */
  positionOf(clientId: number): ConsumerPosition | undefined {
    return this.#places.get(clientId);
  }

  /** How many rounds more than any other client it may have requested since its last report. */
  unreported(clientId: number): number {
    return this.#roundsAhead.get(clientId) ?? ROUNDS_AHEAD_MAX;
  }

  heard(clientId: number, report: RoundsReport, nowMs: number): void {
    const { position, lostTasks = [], roundsAhead } = report;
    if (roundsAhead !== undefined) this.#roundsAhead.set(clientId, roundsAhead);
    if (position !== undefined) {
      const { nextRound, deliveredRound: round, waitsFor = "loop" } = position;
      this.#nextRounds.set(clientId, nextRound);
      this.#places.set(clientId, { round, waitsFor });
    }
    const before = this.#lost.get(clientId);
    const lost = lostTasks.map(({ taskId }) => [taskId, before?.get(taskId) ?? nowMs] as const);
    this.#lost.set(clientId, new Map(lost));
  }

  /** A consumer that leaves has requested every round before this one; undefined if it requested none. */
  stopsAt(clientId: number, nextRound: number | undefined): void {
    if (nextRound !== undefined) this.#nextRounds.set(clientId, nextRound);
    this.#roundsAhead.set(clientId, 0);
  }

  /** A consumer has not accepted the proposal, and is past its start. */
  passed(iterationId: number): void {
    this.#passed.add(iterationId);
  }

  hasPassed(iterationId: number): boolean {
    return this.#passed.has(iterationId);
  }

  /** Clears the mark, once the iteration was reviewed. */
  lookedAt(iterationId: number): void {
    this.#passed.delete(iterationId);
  }

  left(clientId: number): void {
    this.#nextRounds.delete(clientId);
    this.#places.delete(clientId);
    this.#roundsAhead.delete(clientId);
    this.#lost.delete(clientId);
  }

  /** Whether no client reaches the task, or one could not reach it for `timeoutMs`. */
  isUnreachable(
    taskId: number,
    clients: readonly Client[],
    nowMs: number,
    timeoutMs: number,
  ): boolean {
    const since = clients.map(({ clientId }) => this.#lost.get(clientId)?.get(taskId));
    return since.every((ms) => ms !== undefined) ||
      since.some((ms) => ms !== undefined && nowMs - ms >= timeoutMs);
  }
}
