/** Rates of a client's reads, per task. */
import type { ReadDescription, ReadFigures } from "../protocol_figures.ts";
import { RateWindow } from "./rate_window.ts";

/** Most tasks followed per client. */
const TASKS_MAX = 64;

type ReadCounts = "elements" | "bytes" | "wireBytes" | "answerMs" | "heldMs";

interface Entry {
  readonly window: RateWindow<ReadCounts>;
  figures: Pick<ReadFigures, "taskId" | "worker" | "outstanding" | "roundTripMs">;
}

/** The newest reports of one client about its tasks. */
export class ReadRates {
  readonly #windowMs: number;
  readonly #entries = new Map<number, Entry>();

  /** @param windowMs Length of the window of rates. */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** Adds a report; tasks missing from it are over. */
  add(atMs: number, reads: readonly ReadFigures[]): void {
    const told = new Set(reads.map(({ taskId }) => taskId));
    for (const taskId of this.#entries.keys()) if (!told.has(taskId)) this.#entries.delete(taskId);
    for (const figures of reads.slice(0, TASKS_MAX)) {
      const { taskId, elements, bytes, wireBytes, answerMs, heldMs } = figures;
      const { worker, outstanding, roundTripMs } = figures;
      const kept = {
        ...{ taskId, worker, outstanding },
        ...(roundTripMs === undefined ? {} : { roundTripMs }),
      };
      let entry = this.#entries.get(taskId);
      if (entry === undefined) {
        this.#entries.set(
          taskId,
          entry = { window: new RateWindow(this.#windowMs), figures: kept },
        );
      }
      entry.figures = kept;
      entry.window.add(atMs, { elements, bytes, wireBytes, answerMs, heldMs });
    }
  }

  describe(): ReadDescription[] {
    return [...this.#entries.values()].map(({ window, figures }) => ({
      taskId: figures.taskId,
      worker: figures.worker,
      outstanding: figures.outstanding,
      elementsPerSecond: window.perSecond("elements"),
      bytesPerSecond: window.perSecond("bytes"),
      wireBytesPerSecond: window.perSecond("wireBytes"),
      answerMs: window.perUnit("answerMs", "elements"),
      heldMs: window.perUnit("heldMs", "elements"),
      roundTripMs: figures.roundTripMs ?? null,
    }));
  }
}
