/** The schedules that one consumer of coordinated reads knows: which task serves each round. */
import { LeatError } from "../../../core/error.ts";
import type { TaskSource } from "../../dispatcher/protocol.ts";
import type { ElementAnswer } from "../../worker/protocol.ts";
import type { TaskFetcher } from "./task_fetcher.ts";
import {
  changedTasks,
  type RoundSchedule,
  type ScheduleNews,
} from "../../dispatcher/protocol_schedules.ts";

export class RoundSchedules {
  /** Schedules in force, oldest first. */
  #schedules: readonly RoundSchedule[] = [];
  #proposed: RoundSchedule | undefined;
  /** The newest schedule received, accepted or not. */
  #received: RoundSchedule | undefined;

  /** The first round of this consumer; undefined before a schedule is in force for it. */
  get firstRound(): number | undefined {
    return this.#schedules[0]?.fromRound;
  }

  get newestInForce(): RoundSchedule | undefined {
    return this.#schedules.at(-1);
  }

  get acceptedVersion(): number | undefined {
    return (this.#proposed ?? this.newestInForce)?.version;
  }

  /** The first round that may not be requested yet. */
  get limit(): number {
    return this.#proposed?.fromRound ?? Infinity;
  }

  /** The accepted proposal, until it is in force. */
  get proposed(): RoundSchedule | undefined {
    return this.#proposed;
  }

  /** The schedules that the dispatcher need not send again. */
  get known(): { scheduleInForce?: number; knownSchedule?: number } {
    return {
      ...(this.newestInForce === undefined ? {} : { scheduleInForce: this.newestInForce.version }),
      ...(this.#received === undefined ? {} : { knownSchedule: this.#received.version }),
    };
  }

  /** Fills in the tasks that the dispatcher left out because they were reported as known. */
  complete(
    inForce: readonly ScheduleNews[],
    toAccept: ScheduleNews | undefined,
  ): { schedules: readonly RoundSchedule[]; proposed: RoundSchedule | undefined } {
    const schedules = inForce.map((news) => this.#whole(news));
    const proposed = toAccept === undefined ? undefined : this.#whole(toAccept);
    this.#received = proposed ?? schedules.at(-1) ?? this.#received;
    return { schedules, proposed };
  }

  #whole({ taskIds, added, removed, ...schedule }: ScheduleNews): RoundSchedule {
    const known = added !== undefined && removed !== undefined && this.#received !== undefined
      ? changedTasks(this.#received.taskIds, { added, removed })
      : this.#tasksOf(schedule.version);
    const tasks = taskIds ?? known;
    if (tasks !== undefined) return { ...schedule, taskIds: tasks };
    throw new LeatError(
      "internal",
      `The dispatcher left out the tasks of schedule ${schedule.version}, which this client lacks`,
    );
  }

  #tasksOf(version: number): readonly number[] | undefined {
    const inForce = this.#schedules.find((schedule) => schedule.version === version);
    return (inForce ?? (this.#received?.version === version ? this.#received : undefined))?.taskIds;
  }

  /** Takes in the schedules in force and returns the new ones, oldest first. */
  add(schedules: readonly RoundSchedule[]): readonly RoundSchedule[] {
    const known = this.newestInForce?.version ?? -1;
    const fresh = schedules.filter(({ version }) => version > known);
    if (fresh.length > 0) this.#schedules = schedules;
    return fresh;
  }

  /**
   * Accepts a proposal, unless one of its rounds was already requested. Then the dispatcher makes
   * another proposal.
   * @param nextRound The next round to request.
   * @returns Whether a proposal was accepted now.
   */
  consider(proposed: RoundSchedule | undefined, nextRound: number): boolean {
    const before = this.#proposed?.version;
    const isAcceptable = proposed !== undefined && nextRound <= proposed.fromRound &&
      proposed.version > (this.newestInForce?.version ?? -1);
    this.#proposed = isAcceptable ? proposed : undefined;
    return this.#proposed !== undefined && this.#proposed.version !== before;
  }

  /** The task that serves the round; undefined when none does. */
  taskOf(round: number): number | undefined {
    const schedule = this.#schedules.findLast((candidate) => candidate.fromRound <= round);
    return schedule?.taskIds[round % Math.max(1, schedule.taskIds.length)];
  }
}

/** A task that serves, or served, rounds of the schedule. */
export interface ServingTask {
  readonly task: TaskSource;
  readonly fetcher: TaskFetcher;
  lost: boolean;
}

/** A round that was requested, and not yet given to the training loop. */
export interface ReadRound {
  readonly number: number;
  /** The task it was last requested from; undefined while its task is unknown. */
  askedFrom: ServingTask | undefined;
  answer: ElementAnswer | undefined;
  /** The confirmation in flight. If undefined, it must be sent, perhaps again. */
  confirming: symbol | undefined;
  /** Whether all consumers hold their part of it. */
  agreed: boolean;
}

/** The fields of a round that this consumer has not confirmed. */
export const UNCONFIRMED = { confirming: undefined, agreed: false };

/** Whether the schedule contains the task that the round was requested from. */
export function isServedIn(
  { taskIds }: Pick<RoundSchedule, "taskIds">,
  { askedFrom }: Pick<ReadRound, "askedFrom">,
): boolean {
  return askedFrom !== undefined && taskIds.includes(askedFrom.task.taskId);
}
