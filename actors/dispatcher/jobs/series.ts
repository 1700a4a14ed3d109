/** Jobs of one epoch each that follow one another. */
import type { DispatcherState } from "../state/state.ts";

/**
 * What a job has in common with the jobs of its next epochs: its name. A job without a name ends
 * with its epoch, and one that reads the same pipeline for the same identity follows it.
 */
export function seriesOf({ jobs, datasets }: DispatcherState, jobId: number): string {
  const { name, owner, parameters } = jobs.get(jobId)!;
  return JSON.stringify(name ?? [owner, datasets.get(parameters.datasetId)?.fingerprint]);
}
