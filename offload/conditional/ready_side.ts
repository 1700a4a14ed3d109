/** Chooses the side of the next element so that training waits less. */
import type { Side } from "./items.ts";

export type SideName = "local" | "remote";

/**
 * The side that the ratio wants, or the other one if that saves a wait:
 * - workers, if only they have an element ready, and receiving it costs this host less CPU time than
 *   preparing one (`savesCpu`);
 * - this host, if it has prepared all that it may ahead, and workers have no element ready. While it
 *   still prepares, waiting for workers costs nothing, and what they send is received earlier.
 */
export function readySide(
  wanted: SideName,
  { local, remote }: Readonly<Record<SideName, Pick<Side, "isReady" | "aheadSinceMs">>>,
  savesCpu: boolean,
): SideName {
  if (wanted === "local") return savesCpu && remote.isReady && !local.isReady ? "remote" : "local";
  const isIdle = local.isReady && local.aheadSinceMs !== undefined;
  return isIdle && !remote.isReady ? "local" : "remote";
}
