/**
 * Runners in the thread that they are made in, over this host.
 *
 * @module
 */
import { PipelineRunners } from "../actors/worker/pipeline_runner.ts";
import type { RunnerFactory } from "../actors/worker/runner.ts";
import type { WorkerStorage } from "./storage.ts";
import { workerHost } from "./worker_host.ts";

/** Makes runners that stop whatever else the thread does while a function of theirs runs. */
export function inlineRunners(storage: WorkerStorage): RunnerFactory {
  return new PipelineRunners(workerHost(storage));
}
