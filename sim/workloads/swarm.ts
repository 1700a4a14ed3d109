/** Draws the runs of a workload. Each seed has its own faults. */
import { drawCrashes, type Role } from "../faults/crashes.ts";
import { drawFaults, formatOptions, NO_FAULTS } from "../faults/options.ts";
import { SimRandom } from "../engine/random.ts";
import type { RunOptions, Workload } from "./workload.ts";

/** Draws all faults of a seed: network, disks, and crashing roles. */
export function drawOptions(seed: bigint): RunOptions {
  const random = new SimRandom(seed).fork("options");
  const crashes = drawCrashes(random);
  return { seed, crashes, faults: drawFaults(random) };
}

/**
 * Returns the runs of one seed in which a node of a role crashes at its first message, its second, and so
 * on to its last. They have no other faults.
 * @param stride Distance between tried messages.
 */
export async function crashPoints(
  workload: Workload,
  { seed, role, stride = 1 }: { seed: bigint; role: Role; stride?: number },
): Promise<RunOptions[]> {
  const run = { seed, faults: NO_FAULTS };
  const calm = await workload({ ...run, crashPoint: { role, message: Infinity } });
  const messages = calm.cluster.counters.get(`${role}_messages`);
  const points: RunOptions[] = [];
  for (let message = 1; message <= messages; message += stride) {
    points.push({ ...run, crashPoint: { role, message } });
  }
  return points;
}

/** One line with everything about a run that its seed does not determine. */
export function formatRun({ seed, crashes = [], crashPoint, faults }: RunOptions): string {
  const roles = crashes.join(",") || "none";
  const point = crashPoint === undefined ? "" : ` ${crashPoint.role}@${crashPoint.message}`;
  return `SEED=${seed} crashes=${roles}${point} ${formatOptions(faults)}`;
}
