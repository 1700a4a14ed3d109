/** Which mode a job has, by its parameters. */
import type { ShardingMode } from "../../../data/sharding/sharding_policy.ts";
import type { Iteration, Job } from "../state/entities.ts";
import type { JobParameters } from "../protocol.ts";
import { coordinated } from "./coordinated/coordinated.ts";
import { DeterministicMode } from "./deterministic/deterministic.ts";
import { DynamicMode } from "./dynamic.ts";
import type { Mode } from "./mode.ts";
import { OffMode } from "./off.ts";
import { SaveMode } from "./save/save.ts";
import { CustomMode, StaticMode } from "./static.ts";

/** The modes of one sharding policy. */
interface Choice {
  /** Each client reads whatever elements it gets. */
  readonly alone: Mode;
  /** Several consumers read in step (`numConsumers`). */
  readonly together: Mode;
}

const fixed = inRounds(StaticMode);
const deterministic = new DeterministicMode();
const save = new SaveMode();

const MODES: Readonly<Record<ShardingMode, Choice>> = {
  OFF: inRounds(OffMode),
  DYNAMIC: inRounds(DynamicMode),
  FILE: fixed,
  DATA: fixed,
  FILE_OR_DATA: fixed,
  HINT: fixed,
  CUSTOM: inRounds(CustomMode),
  DETERMINISTIC: { alone: deterministic, together: deterministic },
};

function inRounds(Sharding: new () => Mode): Choice {
  return { alone: new Sharding(), together: new (coordinated(Sharding))() };
}

export function modeFor(parameters: JobParameters): Mode {
  if (parameters.save !== undefined) return save;
  const { alone, together } = MODES[parameters.processingMode];
  return parameters.numConsumers === undefined ? alone : together;
}

/** The mode of an iteration's job. */
export function modeOf(
  { jobs }: { readonly jobs: ReadonlyMap<number, Job> },
  { jobId }: Pick<Iteration, "jobId">,
): Mode {
  return modeFor(jobs.get(jobId)!.parameters);
}
