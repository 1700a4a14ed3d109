/**
 * Runners in the thread that they are made in, over this host.
 *
 * @module
 */
import { PipelineRunners } from "../actors/worker/pipeline_runner.ts";
import type { RunnerFactory } from "../actors/worker/runner.ts";
import { DenoHost } from "./deno_host.ts";
import { workerFiles, type WorkerStorage } from "./storage.ts";

/** Makes runners that stop whatever else the thread does while a function of theirs runs. */
export function inlineRunners(
  { storage, storageLatencyMs, services }: WorkerStorage,
): RunnerFactory {
  const files = workerFiles({ storage, storageLatencyMs, services });
  return new PipelineRunners(new DenoHost({ files }));
}
