/**
 * What heartbeats of coordinated reads ask of an iteration, found without a look at all of its tasks and
 * consumers: by which tasks those that serve differ from the newest schedule, who has not accepted what is
 * proposed, and who began with which schedule.
 *
 * @module
 */
import type { Client } from "../../state/entities.ts";
import type { Rounds } from "../mode_state.ts";
import type { ScheduleChange } from "../../protocol_schedules.ts";

interface Change {
  readonly added: readonly number[];
  readonly removed: readonly number[];
}

/** Tasks of which changes are remembered, at least; else as many as serve, which can be told as well. */
const CHANGED_MIN = 64;

/** See the module. It is kept by the tables, and follows from its entities. */
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
  /** The newest schedule with which tasks were replaced in older ones. */
  replacedAt: number;
  /** How the newest schedules differ each from the one before, which has one version less. */
  readonly #changes: { readonly version: number; readonly change: Change }[] = [];
  #remembered = 0;
  readonly #scheduled: Set<number>;
  #isProposed: boolean;
  readonly #acceptedBy: ReadonlySet<number>;

  /** @param rounds Those of a snapshot, to which its tasks and clients are yet to come. */
  constructor({ schedules, proposal }: Rounds) {
    this.#scheduled = new Set((proposal?.schedule ?? schedules.at(-1))?.taskIds);
    for (const taskId of this.#scheduled) this.removed.add(taskId);
    this.#isProposed = proposal !== null;
    this.replacedAt = schedules.at(-1)?.version ?? 0;
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
  proposed(version: number, change: ScheduleChange, clients: Iterable<Client>): void {
    const { added, removed } = change;
    this.#remember(version, change);
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

  /**
   * How the newest schedule but `upTo` differs from an older one; undefined where that is not known any
   * more.
   */
  changesSince(version: number, upTo: number): ScheduleChange | undefined {
    const first = version + 1 - (this.#changes[0]?.version ?? Infinity);
    if (first < 0 || version > upTo) return undefined;
    const added = new Set<number>();
    const removed = new Set<number>();
    for (const { version: to, change } of this.#changes.slice(first)) {
      if (to > upTo) break;
      for (const taskId of change.removed) if (!added.delete(taskId)) removed.add(taskId);
      for (const taskId of change.added) added.add(taskId);
    }
    return { added, removed };
  }

  /** The proposal is in force: all begin with it that have not begun. */
  committed(version: number): void {
    this.#isProposed = false;
    if (this.mayHaveGone) this.replacedAt = version;
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

  /** How the schedules until now differ is not to be told: a change says nothing of their order. */
  forgetChanges(): void {
    this.#changes.length = 0;
    this.#remembered = 0;
  }

  #remember(version: number, { added, removed }: ScheduleChange): void {
    const change = { added: [...added], removed: [...removed] };
    this.#changes.push({ version, change });
    this.#remembered += sizeOf(change);
    const kept = Math.max(CHANGED_MIN, this.serving);
    // Not at each change: what is dropped is moved past.
    if (this.#remembered <= 2 * kept) return;
    let dropped = 0;
    while (this.#remembered > kept && dropped < this.#changes.length - 1) {
      this.#remembered -= sizeOf(this.#changes[dropped++]!.change);
    }
    this.#changes.splice(0, dropped);
  }

  #starts(client: Client, version: number): void {
    const those = this.startedWith.get(version);
    if (those === undefined) this.startedWith.set(version, new Set([client]));
    else those.add(client);
    this.started++;
  }
}

/** How much it takes to remember it. */
function sizeOf({ added, removed }: Change): number {
  return 1 + added.length + removed.length;
}
