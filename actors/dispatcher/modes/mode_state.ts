/** The modes' state of an iteration: plain data, part of the iteration and of snapshots. */
import type { Places } from "./deterministic/places.ts";
import type { RoundSchedule } from "../protocol_schedules.ts";
import type { Saving } from "./save/saving_state.ts";

/** The modes' state of an iteration. No other part of the dispatcher reads it. */
export interface ModeState {
  /** Static policies: indices of the workers that have produced their whole share. */
  shardsDone: number[];
  /** Coordinated reads: the schedules of rounds. */
  rounds: RoundSchedules;
  /** The split progress of a DETERMINISTIC iteration; null in other modes. */
  ordered: Ordered | null;
  /** The progress of a save; null before it starts and in other modes. */
  saving: Saving | null;
}

/**
 * The splits of a DETERMINISTIC iteration by their position in the stream (their sequence). Only
 * sequences from `mark` on are kept; at most a window beyond it is assigned.
 */
export interface Ordered {
  /** The reader has all splits before this one. */
  mark: number;
  /** Splits from here on were never assigned. */
  next: number;
  /** Splits in production. */
  assigned: { readonly sequence: number; readonly taskId: number }[];
  /** Splits beyond the mark that the reader has whole. */
  done: Places;
  /** Splits whose task ended before the reader had them. They are assigned again. */
  lost: Places;
  /** The progress per consumer; `mark` and `done` are what all have. Null: one reader. */
  readonly consumers: OrderedConsumers | null;
}

/** The consumers that share a stream. Those that have not joined take no memory. */
export interface OrderedConsumers {
  readonly count: number;
  /** Consumers that have not joined count as having all splits before this one. */
  readonly mark: number;
  /** The consumers that have joined, by index. */
  readonly reading: Record<number, OrderedConsumer>;
  /** Indices of the consumers that have left. */
  left: Places;
}

/** The progress of one of several readers of a stream. */
export interface OrderedConsumer {
  readonly mark: number;
  readonly done: Places;
}

/** The schedules of rounds (coordinated reads). */
export interface RoundSchedules {
  lastVersion: number;
  /** In force, oldest first. */
  schedules: RoundSchedule[];
  proposal: Proposal | null;
  /** No consumer is known to have passed this round. */
  reached: number;
  /** The common end round; null while there is no end. */
  ended: number | null;
  /** Consumers that ended without reporting what they had requested; missing in older snapshots. */
  vanished?: Vanished | null;
}

/**
 * Ended consumers that may have requested up to `roundsAhead` rounds more than the remaining ones. The
 * next proposed schedule, of this `version` or a later one, begins beyond these rounds.
 */
export interface Vanished {
  readonly version: number;
  readonly roundsAhead: number;
}

/** A schedule that waits for the consumers' acceptance. */
export interface Proposal {
  readonly schedule: RoundSchedule;
  readonly distance: number;
  readonly acceptedBy: number[];
  /** The rounds that each of them holds of tasks outside the proposal, in the same order. */
  readonly held: HeldRounds[];
}

/** A consumer's rounds of lost tasks: all before `before`, and these. */
interface HeldRounds {
  readonly before: number;
  readonly rounds: readonly number[];
}

export function noRounds(): RoundSchedules {
  return { lastVersion: 0, schedules: [], proposal: null, reached: 0, ended: null };
}
