/** Runners in the calling thread, on this host. */
import { PipelineRunners } from "../../actors/worker/runner/pipeline_runner.ts";
import type { RunnerFactory } from "../../actors/worker/runner/runner.ts";
import type { WorkerStorage } from "../storage/storage.ts";
import { workerHost } from "../deno_host.ts";

/** Creates inline runners. A user function blocks the thread while it runs. */
export function inlineRunners(storage: WorkerStorage): RunnerFactory {
  return new PipelineRunners(workerHost(storage));
}
