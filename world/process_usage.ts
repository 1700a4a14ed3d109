/**
 * What this process uses.
 *
 * @module
 */
import process from "node:process";
import type { ProcessUsage } from "../actors/dispatcher/protocol_figures.ts";

const MICROSECONDS = 1e6;

/** @param shared Whether others work in the process beside the one worker that is asked for. */
export function processUsage(shared: boolean): ProcessUsage {
  const { user, system } = process.cpuUsage();
  return {
    cpuSeconds: (user + system) / MICROSECONDS,
    memoryBytes: Deno.memoryUsage().rss,
    shared,
  };
}
