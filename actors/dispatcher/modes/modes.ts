/**
 * The modes by their names.
 *
 * @module
 */
import type { ShardingMode } from "../../../data/sharding_policy.ts";
import type { Iteration, Job } from "../entities.ts";
import type { JobParameters } from "../protocol.ts";
import type { Mode } from "./mode.ts";
import { OffMode } from "./off.ts";
import { CustomMode, StaticMode } from "./static.ts";

const STATIC = new StaticMode();
const OTHER = new OffMode();

const MODES: Readonly<Record<ShardingMode, Mode>> = {
  OFF: OTHER,
  DYNAMIC: OTHER,
  DETERMINISTIC: OTHER,
  FILE: STATIC,
  DATA: STATIC,
  FILE_OR_DATA: STATIC,
  HINT: STATIC,
  CUSTOM: new CustomMode(),
};

/** The mode of jobs with these parameters. */
export function modeFor({ processingMode }: JobParameters): Mode {
  return MODES[processingMode];
}

/** The mode of an iteration's job. */
export function modeOf(
  { jobs }: { readonly jobs: ReadonlyMap<number, Job> },
  { jobId }: Pick<Iteration, "jobId">,
): Mode {
  return modeFor(jobs.get(jobId)!.parameters);
}
