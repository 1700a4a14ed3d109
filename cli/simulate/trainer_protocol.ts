/**
 * What a trainer can be asked, and what it says meanwhile. Batches stay with the trainer; what travels to the main
 * thread is a few numbers.
 *
 * @module
 */

import type { Ref } from "../../actors/runtime/ref.ts";
import type { DistributeOptions } from "../../mod.ts";
import type { StepModel, SynchronousStep } from "./accelerator.ts";
import type { PipelineConfig } from "./pipelines.ts";

/** A trainer: reads batches and lets an accelerator's step pass for each. */
export interface TrainerProtocol {
  /** Begins to read, and gives up what was read before; answers when the first batch is there. */
  open(request: OpenRequest): null;
  /** Trains; answers when it has ended. */
  train(request: TrainRequest): TrainResult;
  /** Gives up what it reads. */
  close(request: null): null;
}

/** Where batches come from. */
export interface OpenRequest {
  readonly pipeline: PipelineConfig;
  /**
   * `colocated`: the pipeline runs in the trainer. `service`: it runs on workers. `ideal`: the first batch again and
   * again, as from an infinitely fast pipeline (section 4.1).
   */
  readonly place: "colocated" | "service" | "ideal";
  /** How the service is read. */
  readonly distribute?: Omit<DistributeOptions, "service">;
  /** Added to each open and read of a file of a colocated pipeline, in ms; default 0. */
  readonly storageLatencyMs?: number;
}

/** How long to train, and how. */
export interface TrainRequest {
  readonly step: StepModel;
  /** Ends after so many batches; default: when the time is over, or the data. */
  readonly batches?: number;
  /** Ends with the first step that ends after so many ms. */
  readonly durationMs?: number;
  /** Trains so long before anything is counted, in ms; default 0. */
  readonly warmupMs?: number;
  /** …and until batches have come from so many nodes: threads that are still loading take CPU from the others. */
  readonly warmupNodes?: number;
  /** Where the trainers of a model wait for each other; default: it trains alone. */
  readonly barrier?: Ref<BarrierProtocol>;
  /** Keeps the names of what came and where it came from; default false. */
  readonly record?: boolean;
  /** Who hears of progress. */
  readonly monitor?: Ref<MonitorProtocol>;
}

/** What a training run came to. Times are of the counted part. */
export interface TrainResult {
  readonly batches: number;
  readonly elapsedMs: number;
  /** Time spent waiting for data, in ms. */
  readonly waitedMs: number;
  /** CPU time of the whole process meanwhile, in ms. */
  readonly cpuMs: number;
  /** Cores of the host that were busy meanwhile, with whatever: other programs count too. */
  readonly hostBusyCores: number;
  /** Tokens of data, and tokens that the accelerator worked through, padding included. */
  readonly tokens: { readonly real: number; readonly padded: number };
  /** Time of every step from the end of the one before, in ms. */
  readonly stepTimesMs: readonly number[];
  /** Sums of the steps as they took this trainer by itself, and as they took all that train in step, in ms. */
  readonly ownStepsMs: number;
  readonly stepsMs: number;
  /** Names of the elements that came, if they were to be recorded. */
  readonly ids: readonly string[];
  /** When batches arrived, by the node they came from, in ms since 1970, if that was to be recorded. */
  readonly arrivals: Readonly<Record<string, readonly number[]>>;
}

/** Where the trainers of one model meet after each step. */
export interface BarrierProtocol {
  /** Answers when the step has ended for all. */
  step(request: { readonly durationMs: number }): SynchronousStep;
}

/** Hears how far trainers are. */
export interface MonitorProtocol {
  progressed(request: TrainProgress): null;
}

/** How far a trainer is. */
export interface TrainProgress {
  readonly trainer: string;
  readonly batches: number;
  readonly elapsedMs: number;
  readonly waitedMs: number;
}

/** What the thread of a trainer is told when it is started. */
export interface TrainerThreadConfig {
  /** The name of the service within this process. */
  readonly service: string;
  /** The dispatcher's node. */
  readonly dispatcher: string;
  /** Time between a client's heartbeats, in ms; default: the service's. */
  readonly clientRefreshMs?: number;
}

/** Milliseconds since 1970, with fractions: comparable between threads, as `performance.now()` is not. */
export function epochMs(): number {
  return performance.timeOrigin + performance.now();
}
