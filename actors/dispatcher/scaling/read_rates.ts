/** Rates of a client's reads, per task. */
import type { ReadDescription, ReadFigures } from "../protocol_figures.ts";
import { countersOf, described, knownFigures } from "../report/described.ts";
import { RateWindow } from "./rate_window.ts";

/** Limit of the tasks followed per client. */
const TASKS_MAX = 64;

interface Entry {
  readonly window: RateWindow;
  figures: ReadFigures;
}

/** The newest reports of one client about its tasks. */
export class ReadRates {
  readonly #windowMs: number;
  readonly #entries = new Map<number, Entry>();

  /** @param windowMs Length of the window of rates. */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** Whether the last report named the task, as a task of this worker. */
  has(taskId: number, worker: string): boolean {
    return this.#entries.get(taskId)?.figures.worker === worker;
  }

  /** Adds a report. Tasks that it does not name are dropped. */
  add(atMs: number, reads: readonly ReadFigures[]): void {
    const named = new Set(reads.map(({ taskId }) => taskId));
    for (const taskId of this.#entries.keys()) if (!named.has(taskId)) this.#entries.delete(taskId);
    for (const read of reads.slice(0, TASKS_MAX)) {
      const { taskId, worker } = read;
      const figures = { taskId, worker, ...knownFigures("read", read) };
      const entry = this.#entries.getOrInsertComputed(
        taskId,
        () => ({ window: new RateWindow(this.#windowMs), figures }),
      );
      entry.figures = figures;
      entry.window.add(atMs, countersOf("read", read));
    }
  }

  describe(): ReadDescription[] {
    return [...this.#entries.values()].map((entry) => {
      const { taskId, worker } = entry.figures;
      return { taskId, worker, ...described("read", [entry]) };
    });
  }
}
