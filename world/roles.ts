/**
 * What a node of the service is for, as plain data, and how it is started: the same on a thread, in
 * a process of its own, and beside others in one thread.
 *
 * @module
 */
import { createDispatcher, type DispatcherConfig } from "../actors/dispatcher/dispatcher.ts";
import { dispatcherAt } from "../actors/dispatcher/protocol.ts";
import type { FencedRef } from "../actors/runtime/ref.ts";
import type { ActorSystem } from "../actors/runtime/system.ts";
import { PipelineRunners } from "../actors/worker/pipeline_runner.ts";
import type { RunnerFactory } from "../actors/worker/runner.ts";
import { createWorker, type WorkerOptions } from "../actors/worker/worker.ts";
import { DenoHost } from "./deno_host.ts";
import { processUsage } from "./process_usage.ts";
import { RunnerThreads } from "./runner_threads.ts";
import { ConfinedRunners } from "./sandbox/confined_runners.ts";
import type { SandboxGrants } from "./sandbox/grants.ts";
import { FRONT_KINDS } from "./service_kinds.ts";
import { workerFiles, type WorkerStorage } from "./storage.ts";

/** A node that keeps the service's books. */
export interface DispatcherRole {
  readonly role: "dispatcher";
  /** The folder of its journal. Without it the journal is kept in memory. */
  readonly journalFolder?: string;
  readonly config?: Omit<DispatcherConfig, "logName" | "wrapJournal" | "dialWorker">;
}

/** A node that produces elements. */
export interface WorkerRole extends WorkerStorage {
  readonly role: "worker";
  /** The dispatcher's node. */
  readonly dispatcher: string;
  readonly config:
    & Pick<WorkerOptions, "name" | "tags" | "heartbeatMs" | "dispatcherTimeoutMs">
    & Pick<WorkerOptions, "windowBytesMax" | "skipAfterMs" | "placement">
    & Pick<WorkerOptions, "process" | "isPrivate">;
  /** Where pipelines run: on threads of their own (default), or in the node's. */
  readonly runners?: "thread" | "inline";
  /** Whether the process is this worker's alone, so that what it uses is the worker's. Default false. */
  readonly ownProcess?: boolean;
  /** Runs pipelines on confined threads, which the running program has to be allowed to make. */
  readonly sandbox?: SandboxGrants;
}

/** A node on which caches and schedulers may be placed, and nothing else. */
export interface FrontRole {
  readonly role: "front";
}

/** What a node is for. */
export type Role = DispatcherRole | WorkerRole | FrontRole;

/** What a role tells and asks of whoever has it taken up: it is no plain data. */
export interface RoleHooks {
  readonly dialWorker?: NonNullable<DispatcherConfig["dialWorker"]>;
  readonly onRefused?: NonNullable<WorkerOptions["onRefused"]>;
}

/** A role that has been taken up. */
export interface Playing {
  /** The dispatcher or worker. */
  readonly actor?: FencedRef;
  /** Lets go of what the role holds beside its actors; called after the system has stopped. */
  close(): Promise<void>;
}

/** The name of the dispatcher's journal in its folder. */
export const JOURNAL_NAME = "dispatcher";

/** Starts a role's actors on a node. */
export function takeUp(system: ActorSystem, role: Role, hooks: RoleHooks = {}): Playing {
  switch (role.role) {
    case "dispatcher": {
      const { config = {} } = role;
      const { dialWorker } = hooks;
      const actor = system.spawn({
        name: "dispatcher",
        create: (context: Parameters<typeof createDispatcher>[0]) =>
          createDispatcher(context, {
            ...config,
            logName: JOURNAL_NAME,
            ...(dialWorker === undefined ? {} : { dialWorker }),
          }),
      });
      return { actor, close: () => Promise.resolve() };
    }
    case "worker": {
      const runners = runnersOf(role);
      const { onRefused } = hooks;
      const { ownProcess = false } = role;
      const actor = system.spawn({
        name: "worker",
        create: (context: Parameters<typeof createWorker>[0]) =>
          createWorker(context, {
            ...role.config,
            dispatcher: dispatcherAt(role.dispatcher),
            runners,
            fronts: FRONT_KINDS,
            usage: () => processUsage(!ownProcess),
            ...(onRefused === undefined ? {} : { onRefused }),
          }),
      });
      return { actor, close: () => runners.close() };
    }
    case "front":
      return { close: () => Promise.resolve() };
  }
}

function runnersOf(
  { runners = "thread", storage, storageLatencyMs, sandbox }: WorkerRole,
): RunnerFactory {
  const reached = { storage, storageLatencyMs };
  if (sandbox !== undefined) return new ConfinedRunners(sandbox, reached);
  return runners === "thread"
    ? new RunnerThreads(reached)
    : new PipelineRunners(new DenoHost({ files: workerFiles(reached) }));
}
