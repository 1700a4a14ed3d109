/** The clocks and the storage of this machine, for planning offloads. */
import type { OffloadDependencies } from "../../offload/dependencies.ts";
import { processUsage } from "../process_usage.ts";

const MS_PER_SECOND = 1_000;

/** The dependencies of planning, on this machine. */
export const machineForOffload: OffloadDependencies = {
  cpuMs: () => MS_PER_SECOND * processUsage(false).cpuSeconds,
  localResources: () => `${navigator.hardwareConcurrency} CPUs`,
  openStore: async (path) => {
    const { openSqliteMetrics } = await import("./sqlite_metrics.ts");
    return openSqliteMetrics(path);
  },
};
