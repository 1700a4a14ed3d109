/**
 * What modes remember of an iteration. It is part of the iteration, which is plain data, and of snapshots.
 *
 * @module
 */
import type { RoundSchedule } from "../protocol_schedules.ts";
import type { Saving } from "./save/saving_state.ts";

/** What modes remember of an iteration. No other part of the dispatcher looks at it. */
export interface ModeState {
  /** Static policies: the indices of the workers that have produced all of their shares. */
  shardsDone: number[];
  /** Coordinated reads: who serves which round. */
  rounds: Rounds;
  /** How far the splits of a DETERMINISTIC iteration are; null for others. */
  ordered: Ordered | null;
  /** How far a save is; null before it has begun, and for others. */
  saving: Saving | null;
}

/**
 * The splits of a DETERMINISTIC iteration by their place in the stream (their sequence). Everything is
 * about sequences from `mark` on, and they are handed out but a window beyond it.
 */
export interface Ordered {
  /** The reader has all of the splits before this one. */
  mark: number;
  /** Those from here on were never handed out. */
  next: number;
  /** Being produced. */
  assigned: { readonly sequence: number; readonly taskId: number }[];
  /** Beyond the mark, what the reader has whole; ascending. */
  done: readonly number[];
  /** Whose task has ended before the reader had them; ascending. They are handed out again. */
  lost: number[];
  /** How far each consumer is, by its index; `mark` and `done` are what all have. Null: one reader. */
  readonly consumers: OrderedConsumer[] | null;
}

/** How far one of several readers of a stream is. */
export interface OrderedConsumer {
  state: "awaited" | "reading" | "left";
  mark: number;
  done: readonly number[];
}

/** Who serves which round (coordinated reads). */
export interface Rounds {
  lastVersion: number;
  /** In force, oldest first. */
  schedules: RoundSchedule[];
  proposal: Proposal | null;
  /** No consumer is known to have been at a later round. */
  reached: number;
  /** The round that all end at; null while there is no end. */
  ended: number | null;
}

/** A schedule that waits for the consumers' consent. */
export interface Proposal {
  readonly schedule: RoundSchedule;
  readonly distance: number;
  /** The clients that have accepted it. */
  readonly acceptedBy: number[];
  /** What each of them holds of tasks that it leaves out, in the same order. */
  readonly held: HeldRounds[];
}

/** What a consumer has of rounds whose tasks are gone: all before `before`, and these. */
export interface HeldRounds {
  readonly before: number;
  readonly rounds: readonly number[];
}

/** Rounds of an iteration at its beginning. */
export function noRounds(): Rounds {
  return { lastVersion: 0, schedules: [], proposal: null, reached: 0, ended: null };
}
