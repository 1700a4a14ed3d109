/**
 * The protocol of a trainer. Batches stay on the trainer's thread. Only a few numbers are sent to the
 * main thread.
 */

import type { Ref } from "../../actors/runtime/ref.ts";
import type { DistributeOptions } from "../../mod.ts";
import type { StepModel, SynchronousStep } from "./accelerator.ts";
import type { PipelineConfig } from "./pipelines.ts";

/** A trainer reads batches, and for each waits as long as the accelerator's step takes. */
export interface TrainerProtocol {
  /** Stops reading, and begins to read a pipeline. Answers when the first batch has arrived. */
  open(request: OpenRequest): null;
  /** Trains, and answers at the end. */
  train(request: TrainRequest): TrainResult;
  /** Stops reading. */
  close(request: null): null;
}

/** The source of batches. */
export interface OpenRequest {
  readonly pipeline: PipelineConfig;
  /**
   * `colocated`: the pipeline runs in the trainer. `service`: it runs on workers. `ideal`: repeats
   * the first batch, like an infinitely fast pipeline (section 4.1).
   */
  readonly place: "colocated" | "service" | "ideal";
  /** The options of reading from the service. */
  readonly distribute?: Omit<DistributeOptions, "service">;
  /** Latency that is added to each open and read of a colocated pipeline's file, in ms; default 0. */
  readonly storageLatencyMs?: number;
}

/** How long to train, and how. */
export interface TrainRequest {
  readonly step: StepModel;
  /** Ends after this many batches. Default: when the time is over, or the data ends. */
  readonly batches?: number;
  /** Ends with the first step after this many ms. */
  readonly durationMs?: number;
  /** Warm-up before counting, in ms; default 0. */
  readonly warmupMs?: number;
  /**
   * The warm-up also lasts until this many nodes have sent a batch, because threads that are still
   * loading use CPU time.
   */
  readonly warmupNodes?: number;
  /** The barrier of the trainers of a model. Default: the trainer trains alone. */
  readonly barrier?: Ref<BarrierProtocol>;
  /** Records the names of elements and their nodes; default false. */
  readonly record?: boolean;
  /** Receives progress. */
  readonly monitor?: Ref<MonitorProtocol>;
}

/** The result of a training run. Times do not include the warm-up. */
export interface TrainResult {
  readonly batches: number;
  readonly elapsedMs: number;
  /** Time spent waiting for data, in ms. */
  readonly waitedMs: number;
  /** CPU time of the whole process meanwhile, in ms. */
  readonly cpuMs: number;
  /** Busy cores of the host meanwhile, other programs included. */
  readonly hostBusyCores: number;
  /** Tokens of data, and tokens that the accelerator processed, padding included. */
  readonly tokens: { readonly real: number; readonly padded: number };
  /** Time of every step from the end of the one before, in ms. */
  readonly stepTimesMs: readonly number[];
  /** Sum of the step times of this trainer alone, in ms. */
  readonly ownStepsMs: number;
  /** Sum of the times of the steps, each that of the slowest trainer, in ms. */
  readonly stepsMs: number;
  /** Names of the received elements, if recorded. */
  readonly ids: readonly string[];
  /** When batches arrived, by their node, in ms since 1970, if recorded. */
  readonly arrivals: Readonly<Record<string, readonly number[]>>;
}

/** The trainers of one model wait here for each other after each step. */
export interface BarrierProtocol {
  /** Answers when the step has ended for all. */
  step(request: { readonly durationMs: number }): SynchronousStep;
}

/** Receives the progress of trainers. */
export interface MonitorProtocol {
  progressed(request: TrainProgress): null;
}

export interface TrainProgress {
  readonly trainer: string;
  readonly batches: number;
  readonly elapsedMs: number;
  readonly waitedMs: number;
}

export interface TrainerThreadConfig {
  /** The name of the service within this process. */
  readonly service: string;
  /** The dispatcher's node. */
  readonly dispatcher: string;
  /** Time between a client's heartbeats, in ms; default: the service's. */
  readonly clientRefreshMs?: number;
}

/**
 * Returns the milliseconds since 1970, with fractions. Threads can compare them, unlike those of
 * `performance.now()`.
 */
export function epochMs(): number {
  return performance.timeOrigin + performance.now();
}
