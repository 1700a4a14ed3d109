/**
 * Limits the resource usage that a process reports. Untrusted functions may make it report anything,
 * and the dispatcher divides a worker's total usage among all of its jobs.
 */
import type { RunnerUsage } from "../../actors/worker/runner/runner.ts";

export interface UsageLimits {
  /** When the process started, in ms. */
  readonly startMs: number;
  readonly cores: number;
  readonly memoryBytesMax: number;
}

const MS_PER_SECOND = 1_000;

/** The latest report of a process, limited to plausible values. */
export class ReportedUsage {
  readonly #limits: UsageLimits;
  #usage: RunnerUsage = { cpuSeconds: 0, memoryBytes: 0 };

  constructor(limits: UsageLimits) {
    this.#limits = limits;
  }

  get usage(): RunnerUsage {
    return this.#usage;
  }

  /** Records a report, limited to what the process can have used. The CPU time never decreases. */
  report({ cpuSeconds, memoryBytes }: RunnerUsage, nowMs: number): void {
    const { startMs, cores, memoryBytesMax } = this.#limits;
    const cpuSecondsMax = cores * (nowMs - startMs) / MS_PER_SECOND;
    this.#usage = {
      cpuSeconds: Math.max(this.#usage.cpuSeconds, Math.min(cpuSeconds, cpuSecondsMax)),
      memoryBytes: Math.min(memoryBytes, memoryBytesMax),
    };
  }
}
