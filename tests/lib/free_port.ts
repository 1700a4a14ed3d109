/** A port of this machine that a test may listen on again. */
import { keptPort } from "../../platform/nodes/kept_port.ts";

/**
 * Returns a port that no listener has. The system gives it to nobody, unlike one that it has chosen
 * itself: that one could belong to another test once its listener is closed.
 */
export function freePort(): number {
  return keptPort("127.0.0.1", (count) => Math.floor(Math.random() * count));
}
