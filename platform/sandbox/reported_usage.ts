/**
 * What a process says that it uses. Functions of others may make it say anything, and the accounts of
 * other jobs contain the sum over all processes of a worker.
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

  /** Takes a report, as far as the process can have used that much: its time never falls. */
  report({ cpuSeconds, memoryBytes }: RunnerUsage, nowMs: number): void {
    const { startMs, cores, memoryBytesMax } = this.#limits;
    const cpuSecondsMax = cores * (nowMs - startMs) / MS_PER_SECOND;
    this.#usage = {
      cpuSeconds: Math.max(this.#usage.cpuSeconds, Math.min(cpuSeconds, cpuSecondsMax)),
      memoryBytes: Math.min(memoryBytes, memoryBytesMax),
    };
  }
}
