/**
 * A worker on a node.
 *
 * @module
 */
import { dispatcherAt } from "../actors/dispatcher/protocol.ts";
import type { ActorSystem } from "../actors/runtime/system.ts";
import type { WorkerProtocol } from "../actors/worker/protocol.ts";
import type { RunnerFactory } from "../actors/worker/runner.ts";
import { createWorker, type WorkerOptions } from "../actors/worker/worker.ts";
import type { StartThread } from "../transport/start_thread.ts";
import { processUsage } from "./process_usage.ts";
import type { Playing, WorkerRole } from "./roles.ts";
import { RunnerThreads } from "./runner_threads.ts";
import { ConfinedRunners } from "./sandbox/confined_runners.ts";
import { FRONT_KINDS } from "./service_kinds.ts";

/** What a worker is given that is no plain data. */
export interface WorkerHooks extends Pick<WorkerOptions, "onRefused"> {
  /** Default: runners on threads, as the role says. */
  readonly runners?: RunnerFactory;
  /** Starts those threads. Default: below the calling one. */
  readonly startThread?: StartThread;
}

/** Starts the worker, and with it a thread for its first pipeline. */
export function takeUpWorker(
  system: ActorSystem,
  role: WorkerRole,
  { startThread, runners = runnersOnThreads(role, startThread), ...hooks }: WorkerHooks = {},
): Playing {
  const { config, dispatcher, ownProcess = false } = role;
  const actor = system.spawn<WorkerProtocol>({
    name: "worker",
    create: (context) =>
      createWorker(context, {
        ...config,
        ...hooks,
        dispatcher: dispatcherAt(dispatcher),
        runners,
        fronts: FRONT_KINDS,
        usage: () => processUsage(!ownProcess),
      }),
  });
  return { actor, close: () => runners.close() };
}

function runnersOnThreads(
  { storage, storageLatencyMs, services, sandbox }: WorkerRole,
  startThread: StartThread | undefined,
): RunnerFactory {
  const reached = { storage, storageLatencyMs, services };
  return sandbox === undefined
    ? new RunnerThreads(reached, startThread)
    : new ConfinedRunners(sandbox, reached);
}
