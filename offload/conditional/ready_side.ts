/** Which side gives the next element where training need not wait for the one that the ratio wants. */
import type { Side } from "./items.ts";
import type { WaitMeter } from "./wait_meter.ts";

export type SideName = "local" | "remote";

/**
 * The side that the ratio wants, or the other if only that has something ready. Where receiving
 * costs this host more CPU time than preparing, workers give no more than their share.
 */
export function sideFor(
  wanted: SideName,
  isReady: Readonly<Record<SideName, boolean>>,
  savesCpu: boolean,
): SideName {
  const other = wanted === "local" ? "remote" : "local";
  const isBetter = isReady[other] && !isReady[wanted] && mayReplace(wanted, savesCpu);
  return isBetter ? other : wanted;
}

/** Waits until one of them is ready that may give the next element. */
export async function readySide(
  wanted: SideName,
  sides: Readonly<Record<SideName, Side>>,
  { savesCpu, waits }: { readonly savesCpu: boolean; readonly waits: WaitMeter },
): Promise<SideName> {
  const { local, remote } = sides;
  const choose = () => sideFor(wanted, { local: local.isReady, remote: remote.isReady }, savesCpu);
  if (choose() === wanted && !sides[wanted].isReady && mayReplace(wanted, savesCpu)) {
    const anyReady = Promise.race([local.whenReady(), remote.whenReady()]);
    await waits.during(wanted, anyReady, wanted === "local" ? remote : local);
  }
  return choose();
}

function mayReplace(wanted: SideName, savesCpu: boolean): boolean {
  return wanted === "remote" || savesCpu;
}
