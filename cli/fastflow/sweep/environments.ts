/** The environments of the measured sweep: pipelines, links, CPU budgets and accelerators. */
import { HOSTS } from "../environments.ts";
import type { Letter } from "../workloads.ts";

/** The most CPUs that trainer and workers of one environment have together. */
export const CPUS_MAX = 4;
/** A step that is so many times as long as preparing a batch with all CPUs here never waits. */
const SLOW = 2;

/** A training with processes of its own. */
export interface SweptEnvironment {
  readonly letter: Letter;
  /** CPUs of the trainer. */
  readonly localCpus: number;
  /** Workers, each with one CPU. */
  readonly workers: number;
  readonly link: "loopback" | "1 Gb/s";
  readonly isDiskSlow: boolean;
  /** The accelerator: as fast as in the paper, half as fast, or so slow that it does not wait. */
  readonly step: "paper" | "half" | "slow";
}

type Cell = [letters: string, localCpus: number, workers: number, more?: Partial<SweptEnvironment>];

const CELLS: readonly Cell[] = [
  ["T G C S R M L", 1, 1],
  ["T G S", 1, 2],
  ["S", 1, 3],
  ["T R", 2, 1],
  ["S C", 2, 2],
  ["S G", 1, 1, { step: "half" }],
  ["T L", 1, 1, { step: "slow" }],
  ["T S", 1, 1, { isDiskSlow: true }],
  ["T G S", 1, 2, { link: "1 Gb/s" }],
];

/** All of them: the last ones need a cable that `tc` slows down. */
export const SWEPT: readonly SweptEnvironment[] = CELLS.flatMap(
  ([letters, localCpus, workers, more]) =>
    letters.split(" ").map((letter): SweptEnvironment => ({
      ...{ letter: letter as Letter, localCpus, workers },
      ...{ link: "loopback", isDiskSlow: false, step: "paper", ...more },
    })),
);

/** Its name, without the workload. */
export function nameOf({ localCpus, workers, link, isDiskSlow, step }: SweptEnvironment): string {
  return [
    `${localCpus}:${workers}`,
    ...(link === "loopback" ? [] : [link]),
    ...(isDiskSlow ? ["slow disk"] : []),
    ...(step === "paper" ? [] : [`${step} accelerator`]),
  ].join(", ");
}

/** How many cores prepare data as fast as its accelerator takes it. */
export function coresWantedOf(
  { step, localCpus }: SweptEnvironment,
  coresWanted: number,
): number {
  return step === "slow" ? localCpus / SLOW : step === "half" ? coresWanted / 2 : coresWanted;
}

/** What its host has; see {@linkcode HOSTS}. */
export const CABLE: { readonly bytesPerSecond: number } = {
  bytesPerSecond: HOSTS["1:1, processes, 1 Gb/s"]!.bytesPerSecond!,
};
export const SLOW_DISK_MS: number = HOSTS["1:1, processes, slow disk"]!.storageLatencyMs!;
