/** Compares the model with real workers on threads of this host. */
import process from "node:process";
import { isForeign } from "../../data/foreign/foreign.ts";
import { inPreOrder } from "../../data/node.ts";
import { Accelerator } from "../simulate/accelerator.ts";
import { type Dataset, LeatError, LocalCluster } from "../../mod.ts";
import { simulateCluster } from "../../sim/model/modelled.ts";
import { type Machines, modelOptions } from "./clusters.ts";
import type { Profile } from "./profile.ts";

/** The warm-up after the first batch, as a share of the measuring time. It is not measured. */
const WARM_UP_SHARE = 0.25;
const MS_PER_SECOND = 1_000;
const MICROSECONDS_PER_MS = 1_000;

/** The measured rate of some workers with one trainer, and the model's prediction. */
export interface Verification {
  readonly workers: number;
  /**
   * CPU time of the process per batch: workers, dispatcher and trainer. Other programs slow the
   * process down, but hardly add to its CPU time.
   */
  readonly measuredCpuMs: number;
  /** What the profile contains of this CPU time: the pipeline and decoding. */
  readonly profiledCpuMs: number;
  readonly measuredBatchesPerSecond: number;
  readonly modelledBatchesPerSecond: number;
}

/** The verifications of 1, 2, … workers. */
export interface Verified {
  readonly verified: readonly Verification[];
  /** Why the next number of workers could not be run, if it could not. */
  readonly whyUnverified?: string;
}

/**
 * Verifies 1 to `workersMax` workers, and ends at the first number that cannot be run: DYNAMIC
 * refuses some pipelines that can be planned.
 */
export async function verifyUpTo(
  dataset: Dataset<unknown>,
  profile: Profile,
  machines: Machines,
  { workersMax, seconds, onRun }: {
    readonly workersMax: number;
    readonly seconds: number;
    /** Called before each number of workers. */
    readonly onRun: (workers: number) => void;
  },
): Promise<Verified> {
  const verified: Verification[] = [];
  try {
    for (let workers = 1; workers <= workersMax; workers++) {
      onRun(workers);
      verified.push(await verify(dataset, profile, machines, { workers, seconds }));
    }
  } catch (error) {
    if (!(error instanceof LeatError)) throw error;
    return { verified, whyUnverified: error.message };
  }
  return { verified };
}

/** Runs a pipeline on a real cluster with one trainer for some seconds, and simulates the same. */
export async function verify(
  dataset: Dataset<unknown>,
  profile: Profile,
  machines: Machines,
  { workers, seconds, accelerator = new Accelerator() }: {
    readonly workers: number;
    readonly seconds: number;
    /** Runs the trainer's steps. Default: by this process's timers. */
    readonly accelerator?: Accelerator;
  },
): Promise<Verification> {
  const modelled = await simulateCluster(modelOptions(
    profile,
    // Without a network: the time of a split already includes messages between threads.
    { ...machines, trainers: 1, networkBytesPerSecond: Infinity, roundTripMs: 0 },
    workers,
  ));
  return {
    workers,
    ...await measureReal(dataset, () => accelerator.step(machines.stepMs), workers, seconds),
    profiledCpuMs: profile.cpuMs + profile.decodeMs,
    modelledBatchesPerSecond: modelled.batchesPerSecond,
  };
}

async function measureReal(
  dataset: Dataset<unknown>,
  train: () => Promise<void>,
  workers: number,
  seconds: number,
): Promise<Pick<Verification, "measuredBatchesPerSecond" | "measuredCpuMs">> {
  // A pipeline that another program built is confined, so it gets none of this program's permissions.
  const confine = inPreOrder(dataset.node).some(isForeign);
  await using service = await LocalCluster.start({ workers, confine });
  const batches = dataset.repeat().distribute({ service, processingMode: "DYNAMIC" });
  await using iterator = batches.iterator();
  const step = async () => {
    await iterator.next();
    await train();
  };
  await step();
  const warmMs = performance.now() + WARM_UP_SHARE * seconds * MS_PER_SECOND;
  while (performance.now() < warmMs) await step();
  const startMs = performance.now();
  const cpuFrom = process.cpuUsage();
  let count = 0;
  for (; performance.now() < startMs + seconds * MS_PER_SECOND; count++) await step();
  const { user, system } = process.cpuUsage(cpuFrom);
  return {
    measuredBatchesPerSecond: MS_PER_SECOND * count / (performance.now() - startMs),
    measuredCpuMs: (user + system) / MICROSECONDS_PER_MS / count,
  };
}
