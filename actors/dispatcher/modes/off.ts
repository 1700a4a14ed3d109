/**
 * OFF: every worker produces the whole dataset, each in an order of its own.
 *
 * @module
 */
import type { Random } from "../../runtime/world.ts";
import type { Iteration } from "../state/entities.ts";
import { Mode } from "./mode.ts";

/** See the module. */
export class OffMode extends Mode {
  /** Workers are to differ, each with its own random order. */
  override seedForTask(_iteration: Iteration, random: Random): string {
    return random.hex64();
  }
}
