/** The resource usage of this process. */
import type { ProcessUsage } from "../actors/dispatcher/protocol_figures.ts";

const MICROSECONDS = 1e6;

/** Deno's types lack it. `node:process` would load half of Node in each thread of a worker. */
const { cpuUsage } = Deno as unknown as {
  /** In microseconds. */
  readonly cpuUsage: () => { readonly user: number; readonly system: number };
};

/** @param shared Whether the worker shares its process with other parts of a program. */
export function processUsage(shared: boolean): ProcessUsage {
  const { user, system } = cpuUsage();
  return {
    cpuSeconds: (user + system) / MICROSECONDS,
    memoryBytes: Deno.memoryUsage().rss,
    shared,
  };
}
