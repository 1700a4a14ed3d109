/** A platform whose clock moves only when the test says so. Timers are the real ones. */
import { DenoWorld } from "../../platform/deno_world.ts";

export class StillWorld extends DenoWorld {
  now = 0;

  override nowMs(): number {
    return this.now;
  }
}
