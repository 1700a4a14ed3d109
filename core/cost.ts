/**
 * What a training job costs: equation 1 of the tf.data service paper (section 4.1), as a pure function
 * of resources, time and prices.
 */
import { LeatError } from "./error.ts";

const SECONDS_PER_HOUR = 3_600;

/** What one unit of each resource costs for one hour, in US dollars. */
export interface Prices {
  /** Dollars for one CPU core for one hour (`C_CPU`). */
  readonly cpuPerCoreHour: number;
  /** Dollars for one GB of memory for one hour (`C_MEM`). */
  readonly memoryPerGBHour: number;
  /** Dollars for one accelerator for one hour (`C_ACC`). */
  readonly acceleratorPerHour: number;
}

/** The quantities of equation 1. */
export interface JobResources {
  /** Time from the job's first step to its last, in seconds (`t`). */
  readonly jobSeconds: number;
  /** Number of preprocessing workers (`n_W`); 0 for colocated preprocessing. */
  readonly workers: number;
  /** Cores that one worker kept busy, on average: *used* ones, because idle ones return to a pool. */
  readonly workerCores: number;
  /** Memory that one worker used, on average, in GB (10⁹ bytes). */
  readonly workerMemoryGB: number;
  /** Number of trainers (`n_T`). */
  readonly trainers: number;
  /** Cores of one trainer's host: all *available* ones, because the whole host is paid for. */
  readonly trainerCores: number;
  /** Memory of one trainer's host, in GB: all that is available. */
  readonly trainerMemoryGB: number;
  /** Accelerators of one trainer (`n_ACC/T`). */
  readonly acceleratorsPerTrainer: number;
}

/** What a job costs, in US dollars, split into workers and trainers. */
export interface JobCost {
  /** What the workers cost. */
  readonly workers: number;
  /** What the trainers cost. */
  readonly trainers: number;
  /** Both together. */
  readonly total: number;
}

/** A virtual machine as a cloud sells it: cores and memory at one price. */
export interface Machine {
  /** The number of its cores. */
  readonly cores: number;
  /** Its memory, in GB. */
  readonly memoryGB: number;
  /** Its price, in US dollars an hour. */
  readonly dollarsPerHour: number;
}

/** The machine that the paper's workers and dispatcher run on, at its price of June 2023. */
export const PAPER_WORKER_MACHINE: Machine = { cores: 8, memoryGB: 32, dollarsPerHour: 0.08 };

/** The machine that the paper's trainers run on (TPU v2-8 VM), accelerator and host together. */
export const PAPER_TRAINER_MACHINE: Machine = { cores: 96, memoryGB: 335, dollarsPerHour: 4.5 };

/**
 * GB of memory that cost as much as one core. The paper prices whole machines; equation 1 prices
 * cores and memory separately. The list prices of Google's N2 machines have this ratio.
 */
const MEMORY_GB_PER_CORE_PRICE = 0.031611 / 0.004237;

/**
 * The paper's prices for whole machines, split into the units of equation 1: a fully used worker
 * machine costs 0.08 dollars an hour, and a trainer (host and one accelerator) 4.50 dollars an
 * hour.
 */
export const PAPER_PRICES: Prices = unitPrices(PAPER_WORKER_MACHINE, PAPER_TRAINER_MACHINE);

function unitPrices(worker: Machine, trainer: Machine): Prices {
  const coreEquivalents = worker.cores + worker.memoryGB / MEMORY_GB_PER_CORE_PRICE;
  const cpuPerCoreHour = worker.dollarsPerHour / coreEquivalents;
  const memoryPerGBHour = cpuPerCoreHour / MEMORY_GB_PER_CORE_PRICE;
  const host = trainer.cores * cpuPerCoreHour + trainer.memoryGB * memoryPerGBHour;
  return { cpuPerCoreHour, memoryPerGBHour, acceleratorPerHour: trainer.dollarsPerHour - host };
}

/**
 * The cost of a job by equation 1:
 * `C = t (C_CPU (n_W CPU_W + n_T CPU_T) + C_MEM (n_W MEM_W + n_T MEM_T) + C_ACC n_T n_ACC/T)`.
 *
 * What workers use can be measured only if each is a process of its own: Leat cannot measure the CPU
 * time of one thread.
 *
 * @param job What ran, and for how long. Cores and memory are average use for workers, and what is
 * available for trainers.
 * @param prices Dollars per unit and hour; default {@linkcode PAPER_PRICES}.
 * @returns Dollars, split into what the workers and what the trainers cost.
 * @throws {LeatError} `invalid_argument` for a quantity or price that is negative or not finite.
 *
 * @example The ResNet-50 job of the paper, preprocessed on its own host
 * ```ts
 * import { costOf } from "./cost.ts";
 *
 * const { total } = costOf({
 *   jobSeconds: 112_320 / 1.75,
 *   workers: 0, workerCores: 0, workerMemoryGB: 0,
 *   trainers: 1, trainerCores: 96, trainerMemoryGB: 335, acceleratorsPerTrainer: 1,
 * });
 * console.log(total.toFixed(1)); // 80.2
 * ```
 */
export function costOf(job: JobResources, prices: Prices = PAPER_PRICES): JobCost {
  for (const [name, value] of [...Object.entries(job), ...Object.entries(prices)]) {
    if (value >= 0 && Number.isFinite(value)) continue;
    throw new LeatError(
      "invalid_argument",
      `costOf: ${name} is ${value}; it must be a finite number, 0 or more`,
    );
  }
  const hours = job.jobSeconds / SECONDS_PER_HOUR;
  const hostPerHour = (cores: number, memoryGB: number) =>
    cores * prices.cpuPerCoreHour + memoryGB * prices.memoryPerGBHour;
  const workers = hours * job.workers * hostPerHour(job.workerCores, job.workerMemoryGB);
  const trainers = hours * job.trainers *
    (hostPerHour(job.trainerCores, job.trainerMemoryGB) +
      job.acceleratorsPerTrainer * prices.acceleratorPerHour);
  return { workers, trainers, total: workers + trainers };
}

/** Several trainers that run the same input pipeline. */
export interface SharedProcessing {
  /** Number of trainers (`k`), at least 1. */
  readonly trainers: number;
  /** What preprocessing for one trainer costs (`C`), in any unit. */
  readonly cost: number;
  /** Size of the sliding window in relation to the dataset, 0 to 1. */
  readonly windowShare: number;
}

/**
 * What preprocessing for several trainers costs, in the unit of {@linkcode SharedProcessing.cost}.
 */
export interface SharedCost {
  /** Each trainer with its own workers: `k C`. */
  readonly unshared: number;
  /** Shared by trainers that run at the same time and speed: `C`. */
  readonly concurrent: number;
  /**
   * Shared by trainers that run one after the other, so that each reuses only the last window of
   * the previous one: `k C - (k - 1) window/dataset C`. Any real overlap costs between this and
   * `concurrent`.
   */
  readonly sequential: number;
}

/**
 * What preprocessing for `k` trainers costs without and with ephemeral data sharing (section 3.5 of the
 * paper).
 *
 * @throws {LeatError} `invalid_argument` for fewer trainers than one, or a window beyond the dataset.
 *
 * @example
 * ```ts
 * import { sharedCost } from "./cost.ts";
 *
 * const { unshared, sequential } = sharedCost({ trainers: 16, cost: 2, windowShare: 0.1 });
 * console.log(unshared, sequential); // 32 29
 * ```
 */
export function sharedCost({ trainers, cost, windowShare }: SharedProcessing): SharedCost {
  if (!(trainers >= 1)) {
    throw new LeatError("invalid_argument", `sharedCost: trainers is ${trainers}; at least 1`);
  }
  if (!(windowShare >= 0 && windowShare <= 1)) {
    throw new LeatError(
      "invalid_argument",
      `sharedCost: windowShare is ${windowShare}; it must lie in 0 to 1`,
    );
  }
  return {
    unshared: trainers * cost,
    concurrent: cost,
    sequential: trainers * cost - (trainers - 1) * windowShare * cost,
  };
}
