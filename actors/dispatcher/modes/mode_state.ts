/** The state that modes keep in an iteration: plain data, which snapshots contain. */
import type { Places } from "./deterministic/places.ts";
import type { RoundSchedule } from "../protocol_schedules.ts";
import type { Saving } from "./save/saving_state.ts";

/** Only modes change this state. */
export interface ModeState {
  /** Static policies: the shares that are completely produced. */
  shardsDone: number[];
  /** Coordinated reads: the schedules of rounds. */
  rounds: RoundSchedules;
  /** The split progress of a DETERMINISTIC iteration; null in other modes. */
  ordered: Ordered | null;
  /** The progress of a save; null before it starts and in other modes. */
  saving: Saving | null;
}

/**
 * The splits of a DETERMINISTIC iteration, by their position in the stream (their sequence). Only
 * those from `mark` on are kept; only those within the window beyond it are assigned.
 */
export interface Ordered {
  /** The reader has all splits before this one. */
  mark: number;
  /** Splits from here on were never assigned. */
  next: number;
  /** Splits in production. */
  assigned: { readonly sequence: number; readonly taskId: number }[];
  /** Splits beyond the mark of which the reader has all elements. */
  done: Places;
  /** Splits whose task ended before the reader had them. They are assigned again. */
  lost: Places;
  /**
   * The consumers; `mark` and `done` above are what all of them have. Null if there is one reader.
   */
  readonly consumers: OrderedConsumers | null;
}

/** The consumers that share a stream. Those that have not joined take no memory. */
export interface OrderedConsumers {
  readonly count: number;
  /** Until a consumer joins, it counts as having all splits before this one. */
  readonly mark: number;
  /** The consumers that have joined, by index. */
  readonly reading: Record<number, OrderedConsumer>;
  /** Indices of the consumers that have left. */
  left: Places;
  /** Left out: unknown. */
  readonly pass?: StreamPass;
}

/** The iteration is a pass over a chain of a stream, for one iterator of the consumers' datasets. */
export interface StreamPass {
  readonly stream: string;
  /**
   * Tells the readings of the stream apart: the run, or the iteration with which consumers without
   * a run began.
   */
  readonly begun: string | number;
  /** The iterator's number within the dataset. */
  readonly iterator: number;
}

/** A new pass. Without `begun`, a reading begins with it. */
export type PassStart = Omit<StreamPass, "begun"> & Partial<Pick<StreamPass, "begun">>;

/** The progress of one of several readers of a stream. */
export interface OrderedConsumer {
  readonly mark: number;
  readonly done: Places;
}

/** The schedules of rounds (coordinated reads). */
export interface RoundSchedules {
  lastVersion: number;
  /** The schedules in force, oldest first. */
  schedules: RoundSchedule[];
  proposal: Proposal | null;
  /**
   * Every new schedule begins after this round: the highest one that the journal says was reached, or
   * the start of a schedule beyond the rounds of vanished consumers.
   */
  reached: number;
  /** The common end round; null while there is no end. */
  ended: number | null;
  /** Consumers that ended without reporting their last requests; missing in older snapshots. */
  vanished?: Vanished | null;
}

/**
 * Ended consumers that may have requested up to `roundsAhead` rounds more than the remaining ones.
 * The next proposed schedule, of this `version` or a later one, begins beyond these rounds.
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
  /** What each of `acceptedBy` holds, in the same order. */
  readonly held: HeldRounds[];
}

/** What a consumer holds of tasks outside a proposal: all rounds before `before`, and `rounds`. */
interface HeldRounds {
  readonly before: number;
  readonly rounds: readonly number[];
}

export function noRounds(): RoundSchedules {
  return { lastVersion: 0, schedules: [], proposal: null, reached: 0, ended: null };
}
