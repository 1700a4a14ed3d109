/**
 * The resource usage that a process reports. Untrusted functions may make it report anything, but a
 * worker's total is charged to other jobs, too. So reports are bounded.
 */
import type { RunnerUsage } from "../../actors/worker/runner/runner.ts";

export interface UsageLimits {
  /** When the process began, in ms. */
  readonly startMs: number;
  readonly cores: number;
  readonly memoryBytesMax: number;
}

const MS_PER_SECOND = 1_000;

/** The last plausible usage of a process. */
export class ReportedUsage {
  readonly #limits: UsageLimits;
  #usage: RunnerUsage = { cpuSeconds: 0, memoryBytes: 0 };

  constructor(limits: UsageLimits) {
    this.#limits = limits;
  }

  get usage(): RunnerUsage {
    return this.#usage;
  }

  /** Takes a report, cut to what the process can have used. Its CPU time never falls. */
  report({ cpuSeconds, memoryBytes }: RunnerUsage, nowMs: number): void {
    const { startMs, cores, memoryBytesMax } = this.#limits;
    const cpuSecondsMax = cores * (nowMs - startMs) / MS_PER_SECOND;
    this.#usage = {
      cpuSeconds: Math.max(this.#usage.cpuSeconds, Math.min(cpuSeconds, cpuSecondsMax)),
      memoryBytes: Math.min(memoryBytes, memoryBytesMax),
    };
  }
}
