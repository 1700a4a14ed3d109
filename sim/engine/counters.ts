/** Counts how often each fault happened, because a green run proves little if no fault happened. */
import { LeatError } from "../../core/error.ts";

/** Every kind of fault that the simulator has. */
export const FAULTS = [
  "message_lost",
  "message_duplicated",
  "message_reordered",
  "message_overflow",
  "message_cut",
  "link_clogged",
  "direction_unlike",
  "swizzled",
  "message_held",
  "link_broken",
  "link_closed",
  "link_half_closed",
  "link_reset",
  "link_silent",
  "connect_failed",
  "connect_refused",
  "partition",
  "node_crashed",
  "node_restarted",
  "node_moved",
  "node_paused",
  "node_slow",
  "node_suspended",
  "crashed_together",
  "wall_clock_stepped",
  "log_tail_torn",
  "log_tail_lost",
  "disk_full",
  "disk_slow",
  "disk_error",
] as const;

type Fault = typeof FAULTS[number];

/** Counts faults, and other events by name (`worker_left`), of one run or of many. */
export class Counters {
  readonly #counts = new Map<string, number>();

  /** Counts a fault. */
  count(name: Fault): void {
    this.tally(name);
  }

  /** Counts an event that is not in {@linkcode FAULTS}. */
  tally(name: string, times = 1): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + times);
  }

  get(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  /** Adds the counts of another instance. */
  add(other: Counters): void {
    for (const [name, times] of other.#counts) this.tally(name, times);
  }

  /** Returns names and counts, sorted by name. */
  entries(): [name: string, count: number][] {
    return [...this.#counts].sort(([a], [b]) => a < b ? -1 : 1);
  }

  /**
   * Checks that each of these happened.
   * @throws LeatError `failed_precondition` naming the events that never happened.
   */
  expectAll(names: Iterable<string>): void {
    const missing = [...names].filter((name) => this.get(name) === 0);
    if (missing.length === 0) return;
    throw new LeatError(
      "failed_precondition",
      `These faults never happened: ${missing.join(", ")}; run more seeds, or make them likelier`,
    );
  }

  /** Returns one readable line. */
  toString(): string {
    return this.entries().map(([name, count]) => `${name}=${count}`).join(" ");
  }
}
