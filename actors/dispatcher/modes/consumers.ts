/** Coordinated reads: what the consumers last reported. */
import type { Client } from "../state/entities.ts";
import type { ConsumerPosition } from "../protocol_figures.ts";
import type { RoundsReport } from "../protocol_heartbeats.ts";
import { ROUNDS_AHEAD_MAX } from "../../worker/protocol.ts";

/** Soft state: after a dispatcher restart the consumers report again. */
export class Consumers {
  readonly #nextRounds = new Map<number, number>();
  readonly #positions = new Map<number, ConsumerPosition>();
  readonly #roundsAhead = new Map<number, number>();
  /** By client and task: since when the client cannot reach the task. */
  readonly #lost = new Map<number, Map<number, number>>();
  /** Iterations with a consumer that cannot accept the proposed schedule: it is past the start. */
  readonly #passed = new Set<number>();

  nextRound(clientId: number): number | undefined {
    return this.#nextRounds.get(clientId);
  }

  /** The round that the client's training loop gets next, and what the loop waits for. */
  positionOf(clientId: number): ConsumerPosition | undefined {
    return this.#positions.get(clientId);
  }

  /**
   * How many rounds more than any other client this one may have requested since its last report.
   */
  unreported(clientId: number): number {
    return this.#roundsAhead.get(clientId) ?? ROUNDS_AHEAD_MAX;
  }

  noteReport(clientId: number, report: RoundsReport, nowMs: number): void {
    const { position, lostTasks = [], roundsAhead } = report;
    if (roundsAhead !== undefined) this.#roundsAhead.set(clientId, roundsAhead);
    if (position !== undefined) {
      const { nextRound, deliveredRound: round, waitsFor = "loop" } = position;
      this.#nextRounds.set(clientId, nextRound);
      this.#positions.set(clientId, { round, waitsFor });
    }
    const before = this.#lost.get(clientId);
    const lost = lostTasks.map(({ taskId }) => [taskId, before?.get(taskId) ?? nowMs] as const);
    this.#lost.set(clientId, new Map(lost));
  }

  /** A leaving consumer says which round it would request next; undefined if it requested none. */
  stopsAt(clientId: number, nextRound: number | undefined): void {
    if (nextRound !== undefined) this.#nextRounds.set(clientId, nextRound);
    this.#roundsAhead.set(clientId, 0);
  }

  /** A consumer cannot accept the proposed schedule, as it is past the start. */
  notePassed(iterationId: number): void {
    this.#passed.add(iterationId);
  }

  hasPassed(iterationId: number): boolean {
    return this.#passed.has(iterationId);
  }

  /** Undoes `notePassed`, once the iteration was reviewed. */
  clearPassed(iterationId: number): void {
    this.#passed.delete(iterationId);
  }

  forget(clientId: number): void {
    this.#nextRounds.delete(clientId);
    this.#positions.delete(clientId);
    this.#roundsAhead.delete(clientId);
    this.#lost.delete(clientId);
  }

  /** Whether all clients fail to reach the task, or one has failed for at least `timeoutMs`. */
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
