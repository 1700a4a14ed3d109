/**
 * What this process uses.
 *
 * @module
 */
import type { ProcessUsage } from "../actors/dispatcher/protocol_figures.ts";

const MICROSECONDS = 1e6;

/**
 * Deno's types leave it out. `node:process` has it too, but brings half of Node with it, which every
 * worker's thread would load.
 */
const { cpuUsage } = Deno as unknown as {
  /** In microseconds. */
  readonly cpuUsage: () => { readonly user: number; readonly system: number };
};

/** @param shared Whether others work in the process beside the one worker that is asked for. */
export function processUsage(shared: boolean): ProcessUsage {
  const { user, system } = cpuUsage();
  return {
    cpuSeconds: (user + system) / MICROSECONDS,
    memoryBytes: Deno.memoryUsage().rss,
    shared,
  };
}
