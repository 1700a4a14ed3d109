/** All pipelines of Leat's side, by name. */
import { checkpoints } from "./checkpoints.ts";
import { coordinated } from "./coordinated.ts";
import { images } from "./images.ts";
import { overhead } from "./overhead.ts";
import { records } from "./records.ts";
import { service } from "./service.ts";
import type { Pipelines } from "./step.ts";
import { texts } from "./texts.ts";

export const PIPELINES: Pipelines = {
  ...overhead,
  ...images,
  ...texts,
  ...records,
  ...service,
  ...coordinated,
  ...checkpoints,
};
