/** The environments of the experiments. One core stands for the paper's container of 7 vCPUs. */

const VCPUS_PER_CORE = 7;
const GIGABIT_BYTES = 125_000_000;
/** The throughput of a hard disk with many small files. */
const SLOW_DISK_BYTES = 20_000_000;

/** The resources of a training. */
export interface Environment {
  /** Such as `1:2`: local cores and workers' cores. */
  readonly name: string;
  readonly localCores: number;
  readonly remoteCores: number;
  /** The network between this host and all workers, in bytes per second. */
  readonly linkBytesPerSecond: number;
  /** How fast workers read files, in bytes per second. */
  readonly remoteDiskBytesPerSecond: number;
}

function environment(
  localCores: number,
  remoteCores: number,
  more: Partial<Environment> = {},
): Environment {
  return {
    ...{ name: `${localCores}:${remoteCores}`, localCores, remoteCores },
    linkBytesPerSecond: 20 * GIGABIT_BYTES / VCPUS_PER_CORE,
    remoteDiskBytesPerSecond: Infinity,
    ...more,
  };
}

/** Measured environments. Workers run on a simulated remote host, which is a network namespace. */
export const HOSTS: Readonly<
  Record<string, { readonly bytesPerSecond?: number; readonly storageLatencyMs?: number }>
> = {
  "1:1, processes, 1 Gb/s": { bytesPerSecond: GIGABIT_BYTES / VCPUS_PER_CORE },
  "1:1, processes, slow disk": { storageLatencyMs: 40 },
};

/** Modelled environments: the paper's, and one with a slow disk. Speeds are a seventh, like the cores. */
export const ENVIRONMENTS: readonly Environment[] = [
  environment(1, 1),
  environment(1, 2),
  environment(1, 3),
  environment(1, 4),
  environment(2, 1),
  environment(1, 4, { name: "1:4, 1 Gb/s", linkBytesPerSecond: GIGABIT_BYTES / VCPUS_PER_CORE }),
  environment(1, 2, {
    name: "1:2, slow disk",
    remoteDiskBytesPerSecond: SLOW_DISK_BYTES / VCPUS_PER_CORE,
  }),
];
