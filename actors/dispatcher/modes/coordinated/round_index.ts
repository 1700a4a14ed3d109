/** An index for coordinated reads, so that a heartbeat needs no scan of tasks and consumers. */
import type { Client } from "../../state/entities.ts";
import type { RoundSchedules } from "../mode_state.ts";
import type { ScheduleChange } from "../../protocol_schedules.ts";

interface Change {
  readonly added: readonly number[];
  readonly removed: readonly number[];
}

/** How many changed tasks are remembered; if more tasks serve now, as many as these. */
const CHANGED_MIN = 64;

/** The index of an iteration's rounds. `Tables` keeps it up to date. */
export class RoundIndex {
  /** Serving tasks that are not in the newest schedule. */
  readonly added: Set<number> = new Set();
  /** Tasks of the newest schedule that do not serve. */
  readonly removed: Set<number> = new Set();
  /** Clients that have not accepted the proposal; empty without one. */
  readonly awaited: Set<number> = new Set();
  /** Clients that have not started: no schedule was committed since they joined. */
  readonly newcomers: Set<Client> = new Set();
  /** The clients that have started, by the version of the schedule they started with. */
  readonly startedWith: Map<number, Set<Client>> = new Map();
  /** How many clients have started. */
  started = 0;
  /** Whether schedules in force may contain tasks that no longer serve. */
  mayHaveLostTasks = true;
  /** The version of the newest schedule that replaced tasks in older ones. */
  replacedAt: number;
  /** How each of the newest schedules differs from the previous version. */
  readonly #changes: { readonly version: number; readonly change: Change }[] = [];
  /** The size of `#changes`, in tasks. */
  #remembered = 0;
  /** The tasks of the newest schedule, proposed or in force. */
  readonly #scheduled: Set<number>;
  #isProposed: boolean;
  readonly #acceptedBy: ReadonlySet<number>;

  /** @param rounds May come from a snapshot, whose tasks and clients are added later. */
  constructor({ schedules, proposal }: RoundSchedules) {
    this.#scheduled = new Set((proposal?.schedule ?? schedules.at(-1))?.taskIds);
    for (const taskId of this.#scheduled) this.removed.add(taskId);
    this.#isProposed = proposal !== null;
    this.replacedAt = schedules.at(-1)?.version ?? 0;
    this.#acceptedBy = new Set(proposal?.acceptedBy);
  }

  get serving(): number {
    return this.#scheduled.size - this.removed.size + this.added.size;
  }

  /** Whether the newest schedule contains exactly the serving tasks. */
  get isScheduled(): boolean {
    return this.added.size + this.removed.size === 0;
  }

  serves(taskId: number): void {
    if (!this.removed.delete(taskId) && !this.#scheduled.has(taskId)) this.added.add(taskId);
  }

  servesNoMore(taskId: number): void {
    this.mayHaveLostTasks = true;
    if (!this.added.delete(taskId) && this.#scheduled.has(taskId)) this.removed.add(taskId);
  }

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

  /** How schedule `upTo` differs from `version`; undefined if the changes between are forgotten. */
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

  /** The proposal is in force now. Clients that have not started start with it. */
  committed(version: number): void {
    this.#isProposed = false;
    if (this.mayHaveLostTasks) this.replacedAt = version;
    // The commit has replaced lost tasks by those of the new schedule, if that has any.
    this.mayHaveLostTasks = this.removed.size > 0 || this.#scheduled.size === 0;
    this.awaited.clear();
    for (const client of this.newcomers) this.#starts(client, version);
    this.newcomers.clear();
  }

  joins(client: Client): void {
    const { clientId, firstVersion } = client;
    if (firstVersion === null) this.newcomers.add(client);
    else this.#starts(client, firstVersion);
    if (this.#isProposed && !this.#acceptedBy.has(clientId)) this.awaited.add(clientId);
  }

  leaves(client: Client): void {
    this.awaited.delete(client.clientId);
    if (this.newcomers.delete(client) || client.firstVersion === null) return;
    const started = this.startedWith.get(client.firstVersion);
    if (started?.delete(client)) this.started--;
    if (started?.size === 0) this.startedWith.delete(client.firstVersion);
  }

  #remember(version: number, { added, removed }: ScheduleChange): void {
    const change = { added: [...added], removed: [...removed] };
    this.#changes.push({ version, change });
    this.#remembered += sizeOf(change);
    const kept = Math.max(CHANGED_MIN, this.serving);
    // Changes are dropped in batches, because `splice` moves the rest of the array.
    if (this.#remembered <= 2 * kept) return;
    let dropped = 0;
    while (this.#remembered > kept && dropped < this.#changes.length - 1) {
      this.#remembered -= sizeOf(this.#changes[dropped++]!.change);
    }
    this.#changes.splice(0, dropped);
  }

  #starts(client: Client, version: number): void {
    this.startedWith.getOrInsertComputed(version, () => new Set()).add(client);
    this.started++;
  }
}

/** The memory a change takes, in tasks. */
function sizeOf({ added, removed }: Change): number {
  return 1 + added.length + removed.length;
}
