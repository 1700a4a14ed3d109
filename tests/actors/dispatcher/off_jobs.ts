/** Jobs under OFF, for tests. */
import type { TestCluster } from "./lib.ts";

export const OFF = { processingMode: "OFF" } as const;

/** Whether the iteration of a client has finished. */
export async function isFinished(cluster: TestCluster, clientId: number): Promise<boolean> {
  return (await cluster.ask("clientHeartbeat", { clientId })).finished;
}
