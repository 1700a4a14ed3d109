/** The parameters of every experiment. */

import type { Corpus } from "../corpus.ts";
import type { Progress } from "../progress.ts";
import type { TrainProgress } from "../trainer_protocol.ts";

/** What to run, and on which data. */
export interface Simulation {
  readonly corpus: Corpus;
  readonly progress: Progress;
  /** Aborted when the run must stop. */
  readonly signal: AbortSignal;
  readonly quick: boolean;
  readonly hostCores: number;
  /** The worker counts that experiment (a), scale-out, tries, ascending; default: its own. */
  readonly workers?: readonly number[];
  /** The trainer counts that experiment (b), sharing, tries, ascending, with 1; default: its own. */
  readonly trainers?: readonly number[];
  /** Storage latency for the second curve of (a), in ms; 0: no second curve. */
  readonly storageLatencyMs: number;
  /** Step time of accelerators that train on images, in ms. Default: from the measured preprocessing. */
  readonly stepTimeMs?: number;
}

/** Images per batch. */
export const IMAGE_BATCH_SIZE = 16;

/** Shows the progress of several trainers as one run. */
export function showProgress({ progress }: Simulation): (report: TrainProgress) => void {
  const latest = new Map<string, TrainProgress>();
  return (report) => {
    latest.set(report.trainer, report);
    const all = [...latest.values()];
    const sum = (value: (report: TrainProgress) => number) =>
      all.reduce((total, one) => total + value(one), 0);
    progress.update({
      done: sum(({ batches }) => batches),
      stallShare: sum(({ waitedMs }) => waitedMs) / Math.max(1, sum(({ elapsedMs }) => elapsedMs)),
    });
  };
}
