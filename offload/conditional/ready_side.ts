/** Which side gives the next element where training need not wait for the one that the ratio wants. */
import type { Side } from "./items.ts";

export type SideName = "local" | "remote";

/**
 * The side that the ratio wants, or the other where that spares a wait:
 * - workers, if they have something ready and this host has not, and receiving costs this host less
 *   CPU time than preparing (`savesCpu`);
 * - this host, if it has prepared all that it may, and workers have nothing ready. As long as it
 *   prepares, it loses nothing by the wait, and what workers send comes in earlier.
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
