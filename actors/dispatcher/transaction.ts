/**
 * Decisions are plain functions of a transaction and a request. `append` journals a change and
 * applies it at once, so the next line sees it.
 */
import type { Random } from "../runtime/world.ts";
import type { JournalRecord } from "./journal/records.ts";
import type { DispatcherState } from "./state/state.ts";

/** The inputs of a decision and its way to change the state. */
export interface Transaction {
  readonly state: DispatcherState;
  readonly random: Random;
  /** Monotonic time in ms. */
  readonly nowMs: number;
  /** Wall-clock time in ms since 1970. */
  readonly wallMs: number;
  /** The names of the workers that share new jobs of static policies. */
  readonly listedWorkers: readonly string[];
  /**
   * Live workers of the journal that have not been heard since this dispatcher started, and may have
   * ended with it. They get no tasks, except for shares of static policies, which wait for them anyway.
   */
  readonly unheard: Set<string>;
  /** Journals a record and applies it. */
  append(record: JournalRecord): void;
}
