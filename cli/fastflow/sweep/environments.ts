/** The environments of the measured sweep: pipelines, workers, links, storage and accelerators. */
import { HOSTS } from "../environments.ts";
import type { Letter } from "../workloads.ts";

/** With a step this many times as long as preparing a batch on this host, training never waits. */
const SLOW = 2;

/**
 * A training that runs in separate processes. The trainer has one CPU, and all workers share another.
 * Only environments whose workers wait for storage have several workers.
 */
export interface SweptEnvironment {
  readonly letter: Letter;
  readonly workers: number;
  readonly link: "loopback" | "1 Gb/s";
  /** Which side's storage takes 40 ms for each open and read. */
  readonly storage: "near" | "far from workers" | "far from all";
  /**
   * The accelerator's speed: as in the paper, half of it, or so slow that training never waits. `on
   * the CPU`: there is no accelerator, and the step computes on the trainer's CPU.
   */
  readonly step: "paper" | "half" | "slow" | "on the CPU";
}

type Cell = [letters: string, workers: number, more?: Partial<SweptEnvironment>];

const CELLS: readonly Cell[] = [
  ["T G C S R M L", 1],
  ["S G", 1, { step: "half" }],
  ["T L", 1, { step: "slow" }],
  ["T S", 1, { step: "on the CPU" }],
  ["T S", 1, { storage: "far from workers" }],
  ["S C", 1, { storage: "far from all" }],
  ["S C T", 2, { storage: "far from all" }],
  ["S", 3, { storage: "far from all" }],
  ["T G S", 1, { link: "1 Gb/s" }],
];

/** All environments. The last ones need a cable that `tc` slows down. */
export const SWEPT: readonly SweptEnvironment[] = CELLS.flatMap(([letters, workers, more]) =>
  letters.split(" ").map((letter): SweptEnvironment => ({
    ...{ letter: letter as Letter, workers },
    ...{ link: "loopback", storage: "near", step: "paper", ...more },
  }))
);

/** The name of an environment, without the workload. */
export function nameOf({ workers, link, storage, step }: SweptEnvironment): string {
  return [
    `1:${workers}`,
    ...(link === "loopback" ? [] : [link]),
    ...(storage === "near" ? [] : [`storage ${storage}`]),
    ...(step === "paper"
      ? []
      : [step === "on the CPU" ? "step on the CPU" : `${step} accelerator`]),
  ].join(", ");
}

/** Whether the processes wait so much that several environments can share CPUs. */
export function isWaiting({ storage }: SweptEnvironment): boolean {
  return storage === "far from all";
}

/** How many batches the accelerator takes while this host alone prepares one. */
export function speedOf({ step }: SweptEnvironment, coresWanted: number): number {
  if (step === "slow") return 1 / SLOW;
  return step === "half" ? coresWanted / 2 : coresWanted;
}

/** The cable to the workers' host; see {@linkcode HOSTS}. */
export const CABLE: { readonly bytesPerSecond: number } = {
  bytesPerSecond: HOSTS["1:1, processes, 1 Gb/s"]!.bytesPerSecond!,
};
/** The latency of far storage, in ms. */
export const FAR_MS: number = HOSTS["1:1, processes, slow disk"]!.storageLatencyMs!;
