/** Starts a worker's actor on a node, with the runners of its pipelines. */
import { dispatcherAt } from "../actors/dispatcher/protocol.ts";
import type { ActorSystem } from "../actors/runtime/system.ts";
import type { WorkerProtocol } from "../actors/worker/protocol.ts";
import type { RunnerFactory, RunnerUsage } from "../actors/worker/runner/runner.ts";
import { createWorker } from "../actors/worker/worker.ts";
import { definedFields } from "../core/tree.ts";
import type { WorkerOptions } from "../actors/worker/worker_options.ts";
import type { ProcessUsage } from "../actors/dispatcher/protocol_figures.ts";
import type { StartThread } from "../transport/start_thread.ts";
import { processUsage } from "../platform/process_usage.ts";
import type { RunningRole, WorkerRole } from "./roles.ts";
import { RunnerThreads, type RunnerThreadsOptions } from "../platform/threads/runner_threads.ts";
import {
  ConfinedRunners,
  type ConfinedRunnersOptions,
} from "../platform/sandbox/confined_runners.ts";
import type { KernelGuards } from "../platform/sandbox/guards/kernel_guards.ts";
import type { LateThreads } from "../platform/threads/ending_threads.ts";
import { PROXY_KINDS } from "../platform/nodes/service_kinds.ts";

export interface WorkerHooks extends Pick<WorkerOptions, "onRefused"> {
  /** Default: confined processes or threads, according to the role. */
  readonly runners?: RunnerFactory;
  /** Starts the runners' threads. Default: the calling thread does. */
  readonly startThread?: StartThread;
  /** Called with the number of threads that ignore the request to end, whenever that number grows. */
  readonly onRunaways?: (count: number) => void;
  /** Called when a thread has neither loaded nor ended: most likely no thread of this process ever will. */
  readonly onNeverLoaded?: () => void;
  /** Time limit for loading a thread, in ms. Default two minutes. */
  readonly loadTimeoutMs?: number;
}

/** Starts the worker, and a thread for its first pipeline. */
export function startWorkerRole(
  system: ActorSystem,
  role: WorkerRole,
  { startThread, onRunaways, onNeverLoaded, loadTimeoutMs, runners: given, ...hooks }: WorkerHooks =
    {},
): RunningRole {
  const warnOfRunaways = (what: string) => {
    const count = runners.runaways ?? 0;
    system.world.log("warn", `${what} Restart this worker (${count} such threads now)`);
    onRunaways?.(count);
  };
  const runners = given ?? runnersOf(role, { start: startThread, loadTimeoutMs }, {
    onRunaway: (what) =>
      warnOfRunaways(
        `A function of ${what} has not yielded since its thread was asked to end, and Deno cannot end ` +
          "that thread: it keeps a core busy.",
      ),
    onNeverLoaded: () => {
      warnOfRunaways(
        "A thread for pipelines was asked to end before it had loaded, and has not ended. No function " +
          "has run on it. Perhaps this machine is overloaded (run fewer workers or fewer other " +
          "programs), or Deno checks types for each thread (leave --check out of `deno run`).",
      );
      onNeverLoaded?.();
    },
    onSlowLoading: (what) => system.world.log("warn", what),
    onRetry: ({ message }) =>
      system.world.log("error", `A pipeline cannot start, and is tried again: ${message}`),
    onGuardMissing: (guards) => system.world.log("warn", guardWarning(guards)),
  });
  const { config, dispatcher, ownProcess = false } = role;
  const actor = system.spawn<WorkerProtocol>({
    name: "worker",
    create: (context) =>
      createWorker(context, {
        ...config,
        ...hooks,
        dispatcher: dispatcherAt(dispatcher),
        runners,
        proxies: PROXY_KINDS,
        usage: () => ({ ...usageWith(runners.usage, !ownProcess), ...runawaysOf(runners) }),
      }),
  });
  return { actor, close: () => runners.close() };
}

/** The warning for kernels that lack a guard: what functions can do there. */
function guardWarning({ landlock, callFilter }: KernelGuards): string {
  const missing = [
    ...(landlock > 0 ? [] : [
      "This system has no Landlock: functions can read the targets of links in data roots, and only " +
      "Deno's own permissions keep them from other files. Linux 5.13 or later has Landlock.",
    ]),
    ...(callFilter ? [] : [
      "This system takes no filter of system calls (seccomp): if a folder of --allow-write contains a " +
      "link, functions can change the mode and the times of its target. Only Deno's own permissions " +
      "keep them from sending signals, opening sockets and starting programs. Linux has seccomp, " +
      "unless the container denies it.",
    ]),
  ];
  return missing.join(" ");
}

/** Called to warn the operator about runners. */
type RunnerWarnings =
  & Required<LateThreads & Pick<RunnerThreadsOptions, "onSlowLoading" | "onRetry">>
  & Required<Pick<ConfinedRunnersOptions, "onGuardMissing">>;

function runnersOf(
  { storage, storageLatencyMs, services, imageBytesMax, sandbox, runawayAfterMs }: WorkerRole,
  { start, loadTimeoutMs }: Pick<RunnerThreadsOptions, "start" | "loadTimeoutMs">,
  { onSlowLoading, onRetry, onGuardMissing, ...late }: RunnerWarnings,
): RunnerFactory {
  const storageOptions = { storage, storageLatencyMs, services, imageBytesMax };
  if (sandbox !== undefined) {
    return new ConfinedRunners(sandbox, storageOptions, { onRetry, onGuardMissing });
  }
  return new RunnerThreads(storageOptions, {
    ...{ start, onSlowLoading, onRetry },
    ...definedFields({ runawayAfterMs, loadTimeoutMs }),
    ...late,
  });
}

/** The resource usage of this process and its runners' processes. */
function usageWith(runners: RunnerUsage | undefined, isShared: boolean): ProcessUsage {
  const own = processUsage(isShared);
  if (runners === undefined) return own;
  return {
    ...own,
    cpuSeconds: own.cpuSeconds + runners.cpuSeconds,
    memoryBytes: own.memoryBytes + runners.memoryBytes,
  };
}

function runawaysOf({ runaways = 0 }: RunnerFactory): Pick<ProcessUsage, "runawayThreads"> {
  return runaways === 0 ? {} : { runawayThreads: runaways };
}
