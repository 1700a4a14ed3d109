/**
 * What heartbeats of coordinated reads ask of an iteration, found without a look at all of its tasks and
 * consumers: by which tasks those that serve differ from the newest schedule, who has not accepted what is
 * proposed, and who began with which schedule.
 *
 * @module
 */
import type { Client, Rounds } from "./entities.ts";

/** How the tasks of a schedule differ from those of the one before it. */
export interface ScheduleChange {
  readonly added: Iterable<number>;
  readonly removed: Iterable<number>;
}

/** See the module. It is kept by the state, and follows from its entities. */
export class RoundIndex {
  /** Tasks that serve, and are not in the newest schedule. */
  readonly added: Set<number> = new Set();
  /** Tasks of the newest schedule that do not serve. */
  readonly removed: Set<number> = new Set();
  /** The clients that have not accepted the proposal; empty where there is none. */
  readonly awaited: Set<number> = new Set();
  /** The clients that no schedule was put in force for since they came. */
  readonly newcomers: Set<Client> = new Set();
  /** The others, by the schedule that they began with. */
  readonly startedWith: Map<number, Set<Client>> = new Map();
  started = 0;
  /** Whether schedules that were in force before the newest may have tasks that serve no more. */
  mayHaveGone = true;
  readonly #scheduled: Set<number>;
  #isProposed: boolean;
  readonly #acceptedBy: ReadonlySet<number>;

  /** @param rounds Those of a snapshot, to which its tasks and clients are yet to come. */
  constructor({ schedules, proposal }: Rounds) {
    this.#scheduled = new Set((proposal?.schedule ?? schedules.at(-1))?.taskIds);
    for (const taskId of this.#scheduled) this.removed.add(taskId);
    this.#isProposed = proposal !== null;
    this.#acceptedBy = new Set(proposal?.acceptedBy);
  }

  /** How many tasks serve. */
  get serving(): number {
    return this.#scheduled.size - this.removed.size + this.added.size;
  }

  /** Whether the newest schedule has just the tasks that serve. */
  get isScheduled(): boolean {
    return this.added.size + this.removed.size === 0;
  }

  /** A task serves from now on. */
  serves(taskId: number): void {
    if (!this.removed.delete(taskId) && !this.#scheduled.has(taskId)) this.added.add(taskId);
  }

  /** A task that has served does so no more. */
  servesNoMore(taskId: number): void {
    this.mayHaveGone = true;
    if (!this.added.delete(taskId) && this.#scheduled.has(taskId)) this.removed.add(taskId);
  }

  /** A schedule is proposed to those clients. */
  proposed({ added, removed }: ScheduleChange, clients: Iterable<Client>): void {
    for (const taskId of removed) {
      if (this.#scheduled.delete(taskId) && !this.removed.delete(taskId)) this.added.add(taskId);
    }
    for (const taskId of added) {
      this.#scheduled.add(taskId);
      if (!this.added.delete(taskId)) this.removed.add(taskId);
    }
    this.#isProposed = true;
    for (const { clientId } of clients) this.awaited.add(clientId);
  }

  accepted(clientId: number): void {
    this.awaited.delete(clientId);
  }

  /** The proposal is in force: all begin with it that have not begun. */
  committed(version: number): void {
    this.#isProposed = false;
    // Tasks that are gone were replaced by those of the new schedule, if it has any.
    this.mayHaveGone = this.removed.size > 0 || this.#scheduled.size === 0;
    this.awaited.clear();
    for (const client of this.newcomers) this.#starts(client, version);
    this.newcomers.clear();
  }

  comes(client: Client): void {
    const { clientId, firstVersion } = client;
    if (firstVersion === null) this.newcomers.add(client);
    else this.#starts(client, firstVersion);
    if (this.#isProposed && !this.#acceptedBy.has(clientId)) this.awaited.add(clientId);
  }

  leaves(client: Client): void {
    this.awaited.delete(client.clientId);
    if (this.newcomers.delete(client) || client.firstVersion === null) return;
    const those = this.startedWith.get(client.firstVersion);
    if (those?.delete(client)) this.started--;
    if (those?.size === 0) this.startedWith.delete(client.firstVersion);
  }

  #starts(client: Client, version: number): void {
    const those = this.startedWith.get(version);
    if (those === undefined) this.startedWith.set(version, new Set([client]));
    else those.add(client);
    this.started++;
  }
}
