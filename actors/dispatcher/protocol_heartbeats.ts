/** Answers to heartbeats, and the parts of a client's heartbeat that depend on how it reads. */
import type { TaskDefinition, TaskSource } from "./protocol.ts";
import type { RoundWait } from "./protocol_figures.ts";
import type { ScheduleNews } from "./protocol_schedules.ts";

/** The report of a consumer of coordinated reads. */
export interface RoundsReport {
  readonly kind: "rounds";
  /** Most rounds that it requests ahead of its training loop. */
  readonly roundsAhead?: number;
  /** How far it has read; missing until it knows its first round. */
  readonly position?: RoundsPosition;
  /**
   * The newest schedule it has accepted. Until that is in force, it requests no round from its
   * `fromRound` on, and takes nothing more from tasks outside it.
   */
  readonly acceptedSchedule?: number;
  /** The newest schedule in force that it has, and the newest it knows. */
  readonly scheduleInForce?: number;
  readonly knownSchedule?: number;
  /** With a schedule not yet in force: rounds it holds of other tasks. */
  readonly heldRounds?: readonly number[];
  /** Tasks it could not reach, with the round it wanted. */
  readonly lostTasks?: readonly { readonly taskId: number; readonly round?: number }[];
}

export interface RoundsPosition {
  /**
   * `"ended"`: the round not yet delivered is the end round; all consumers hold it, and it has no
   * elements.
   */
  readonly kind: "reading" | "ended";
  /** The first round of which this consumer has fetched nothing. */
  readonly nextRound: number;
  /** The first round not yet delivered to its training loop. */
  readonly deliveredRound: number;
  /** What its training loop waits for; missing while the loop is busy. */
  readonly waitsFor?: RoundWait;
}

/** The report of a DETERMINISTIC reader. */
export interface OrderedReport {
  readonly kind: "ordered";
  /** It has all splits before this position in their order. */
  readonly mark: number;
  /** It has these splits beyond it, ascending. */
  readonly done: readonly number[];
}

/** What a client reports besides figures. Clients of other modes report nothing. */
export type ReaderReport = RoundsReport | OrderedReport;

/** For a consumer of coordinated reads. */
export interface RoundsNews {
  readonly kind: "rounds";
  /**
   * The schedules in force, oldest first. Round r is served by the newest that starts at or before
   * it. A new consumer gets none until a schedule is committed for it, and starts at that schedule's
   * `fromRound`. A new list also replaces lost tasks in older schedules: a round requested from a
   * lost task and not kept must be requested again from the replacement.
   */
  readonly schedules: readonly ScheduleNews[];
  /** A schedule to accept, if `nextRound` is not beyond its `fromRound`. */
  readonly proposed?: ScheduleNews;
  /**
   * The round where all consumers end, also those that join later. All consumers hold the earlier
   * rounds that they took part in.
   */
  readonly endRound?: number;
  /**
   * Consumers that take no part in rounds before `beforeRound`, because they joined later, or in any
   * round (null), because they have left.
   */
  readonly absent: readonly {
    readonly consumerIndex: number;
    readonly beforeRound: number | null;
  }[];
}

/** For a DETERMINISTIC reader. */
export interface OrderedNews {
  readonly kind: "ordered";
  /** How many splits beyond the reader's reported position may be assigned. */
  readonly windowSplits: number;
  /** The number of splits and a digest of their table, once they are listed. */
  readonly table?: {
    readonly total: number;
    readonly digest: string;
  };
  /** With consumers: indices of those that have left. Nobody needs their remaining elements. */
  readonly left: readonly number[];
}

/** For a client that waits for a save, once the save has started. */
export interface SaveNews {
  readonly kind: "save";
  readonly progress: SavingNews;
}

/** The mode's part of the answer. Clients of other modes get no such part. */
export type ReaderNews = RoundsNews | OrderedNews | SaveNews;

/** The tasks that a client can read. */
export type TaskListNews = WholeTaskList | TaskListChanges;

/** For a client without a list, or with one too old to tell the changes. */
interface WholeTaskList {
  readonly kind: "whole";
  /** All of them. */
  readonly tasks: readonly TaskSource[];
}

/** Changes since the list that the client has named. */
export interface TaskListChanges {
  readonly kind: "changes";
  /** Tasks that it lacks or that have moved. */
  readonly tasks: readonly TaskSource[];
  /** Its tasks that cannot be read any more. */
  readonly endedTasks: readonly number[];
}

/** The answer to a worker's heartbeat. */
export type WorkerNews = WorkNews | TakeoverNews;

export interface WorkNews {
  readonly kind: "work";
  /** Tasks it should hold and did not report. */
  readonly newTasks: readonly TaskDefinition[];
  /** Reported tasks that it should drop: ended, fenced or unknown. */
  readonly endedTasks: readonly number[];
  /** Time without a heartbeat, in ms, after which the worker is lost. */
  readonly timeoutMs?: number;
}

/**
 * The worker is not registered yet, because another incarnation has its name. It must repeat the
 * heartbeat at once with that incarnation in `follows`. This fences late heartbeats: a heartbeat of a
 * dead sender cannot name the incarnation that has already replaced it.
 */
interface TakeoverNews {
  readonly kind: "takeover";
  /** The incarnation that has the name. */
  readonly incarnation: string;
}

/** A save's progress. */
export interface SavingNews {
  /** Splits written. */
  readonly splitsDone: number;
  /** All splits. */
  readonly splitsTotal: number;
  /** Elements written. */
  readonly elements: number;
  /** Bytes written, after compression if any. */
  readonly sizeBytes: number;
}
