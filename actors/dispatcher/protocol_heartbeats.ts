/** Answers to heartbeats, and the parts of a client's heartbeat that depend on how it reads. */
import type { TaskDefinition, TaskSource } from "./protocol.ts";
import type { RoundWait } from "./protocol_figures.ts";
import type { ScheduleNews } from "./protocol_schedules.ts";

/** The report of a consumer of coordinated reads. */
export interface RoundsReport {
  readonly kind: "rounds";
  /** The consumer requests at most this many rounds ahead of its training loop. */
  readonly roundsAhead?: number;
  /** How far it has read; missing until it knows its first round. */
  readonly position?: RoundsPosition;
  /**
   * The newest schedule that the consumer has accepted. Until that is in force, the consumer
   * requests no round from the schedule's `fromRound` on, and nothing from tasks outside the
   * schedule.
   */
  readonly acceptedSchedule?: number;
  /** The newest schedule that the consumer knows to be in force. */
  readonly scheduleInForce?: number;
  /** The newest schedule that the consumer knows, proposed or in force. */
  readonly knownSchedule?: number;
  /** The rounds that it holds of tasks outside `acceptedSchedule`, if that is not yet in force. */
  readonly heldRounds?: readonly number[];
  /** Tasks that it could not reach, with the round that it wanted. */
  readonly lostTasks?: readonly { readonly taskId: number; readonly round?: number }[];
}

export interface RoundsPosition {
  /**
   * `"ended"`: the round not yet delivered is the end round; all consumers hold it, and it has no
   * elements.
   */
  readonly kind: "reading" | "ended";
  /** The first round that this consumer has not requested. */
  readonly nextRound: number;
  /** The first round not yet delivered to its training loop. */
  readonly deliveredRound: number;
  /** What its training loop waits for; missing while the loop is busy. */
  readonly waitsFor?: RoundWait;
}

/** The report of a DETERMINISTIC reader. */
export interface OrderedReport {
  readonly kind: "ordered";
  /** The reader has all splits before this position in their order. */
  readonly mark: number;
  /** The reader also has these later splits, ascending. */
  readonly done: readonly number[];
}

/** What a client reports besides figures. Clients of other modes report nothing. */
export type ReaderReport = RoundsReport | OrderedReport;

/** For a consumer of coordinated reads. */
export interface RoundsNews {
  readonly kind: "rounds";
  /**
   * The schedules in force, oldest first. Round r is served by the newest schedule that starts at
   * or before r. A new consumer gets none until a schedule is committed after it joined, and starts
   * at that schedule's `fromRound`. A new list may replace lost tasks in older schedules: then a
   * round of a lost task that is not kept must be requested again from the replacement.
   */
  readonly schedules: readonly ScheduleNews[];
  /**
   * A proposed schedule. A consumer must not accept it if its `nextRound` is beyond `fromRound`.
   */
  readonly proposed?: ScheduleNews;
  /**
   * The round where all consumers end, also those that join later. All consumers hold the earlier
   * rounds that they took part in.
   */
  readonly endRound?: number;
  /**
   * Consumers that take no part in rounds before `beforeRound`, because they joined later, or in
   * any round (null), because they have left.
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
  /** The consumers that have left, by index. Nobody needs their remaining elements. */
  readonly left: readonly number[];
}

/** For a client that waits for a save, once the save has started. */
export interface SaveNews {
  readonly kind: "save";
  readonly progress: SavingNews;
}

/** The mode's part of the answer to a client; missing in other modes. */
export type ReaderNews = RoundsNews | OrderedNews | SaveNews;

/** The tasks that a client can read. */
export type TaskListNews = WholeTaskList | TaskListChanges;

/** For a client without a list, or with a list for which the changes are not known any more. */
interface WholeTaskList {
  readonly kind: "whole";
  readonly tasks: readonly TaskSource[];
}

/** Changes since the list that the client has named. */
export interface TaskListChanges {
  readonly kind: "changes";
  /** Tasks that are new or whose address has changed. */
  readonly tasks: readonly TaskSource[];
  /** Tasks that can no longer be read. */
  readonly endedTasks: readonly number[];
}

/** The answer to a worker's heartbeat. */
export type WorkerNews = WorkNews | TakeoverNews;

export interface WorkNews {
  readonly kind: "work";
  /** Tasks that the worker should run and did not report. */
  readonly newTasks: readonly TaskDefinition[];
  /** More new tasks than fit into this answer: the worker asks for the others at once. */
  readonly hasMoreTasks?: true;
  /** Reported tasks that the worker should drop, as they have ended or are unknown. */
  readonly endedTasks: readonly number[];
  /** Time without a heartbeat, in ms, after which the worker is lost. */
  readonly timeoutMs?: number;
  /** The dispatcher has restarted since: the next heartbeat must have all figures of all tasks. */
  readonly lacksFigures?: true;
}

/**
 * The worker is not registered yet, because another incarnation has its name. It must repeat the
 * heartbeat at once with that incarnation in `follows`. This fences late heartbeats: a heartbeat of
 * a dead sender cannot name the incarnation that has already replaced it.
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
