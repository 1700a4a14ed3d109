/** OFF: every worker produces the whole dataset, each in its own order if the pipeline has no seed. */
import type { Random } from "../../runtime/world.ts";
import type { Iteration } from "../state/entities.ts";
import { Mode } from "./mode.ts";

export class OffMode extends Mode {
  /** For pipelines without a seed: each worker has its own, so that their random orders differ. */
  override seedForTask(_iteration: Iteration, random: Random): string {
    return random.hex64();
  }
}
