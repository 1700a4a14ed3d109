/** OFF: every worker produces the whole dataset, each in its own order. */
import type { Random } from "../../runtime/world.ts";
import type { Iteration } from "../state/entities.ts";
import { Mode } from "./mode.ts";

export class OffMode extends Mode {
  /** Each worker has its own seed, so that their random orders differ. */
  override seedForTask(_iteration: Iteration, random: Random): string {
    return random.hex64();
  }
}
