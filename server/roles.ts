/** The roles of nodes, as plain data. A role starts the same way on a thread, in a process or inline. */
import type { DispatcherConfig } from "../actors/dispatcher/config.ts";
import type { Supervision } from "../actors/runtime/actor.ts";
import type { FencedRef } from "../actors/runtime/ref.ts";
import type { ActorSystem } from "../actors/runtime/system.ts";
import type { WorkerLimits, WorkerOptions } from "../actors/worker/worker_options.ts";
import type { NodeContext } from "../transport/thread_control.ts";
import type { SandboxGrants } from "../platform/sandbox/grants.ts";
import type { WorkerStorage } from "../platform/storage/storage.ts";

export interface DispatcherRole {
  readonly role: "dispatcher";
  /** The folder of the journal. Default: the journal is in memory. */
  readonly journalFolder?: string;
  readonly config?: Omit<
    DispatcherConfig,
    "logName" | "wrapJournal" | "dialWorker" | "isNodeAddress"
  >;
  /** How often the node restarts the dispatcher after failures. Default: as often as any actor. */
  readonly supervision?: Supervision;
}

/** A node that produces elements. */
export interface WorkerRole extends WorkerStorage {
  readonly role: "worker";
  readonly dispatcher: string;
  readonly config:
    & WorkerLimits
    & Pick<WorkerOptions, "name" | "tags" | "windowBytesMax">
    & Pick<WorkerOptions, "placement" | "process" | "isPrivate">;
  /** Where pipelines run: on threads of their own (default), or on the node's thread. */
  readonly runners?: "thread" | "inline";
  /** Whether the process serves only this worker, so that its usage is the worker's. Default false. */
  readonly ownProcess?: boolean;
  /** Runs pipelines in confined processes. The program needs permission to start processes. */
  readonly sandbox?: SandboxGrants;
  /** Without a sandbox: how long a thread may ignore the request to end, in ms. */
  readonly runawayAfterMs?: number;
}

/** A node for caches and schedulers only. */
export interface ProxyRole {
  readonly role: "proxy";
}

export type Role = DispatcherRole | WorkerRole | ProxyRole;

/** A role that has been started on a node. */
export interface RunningRole {
  readonly actor?: FencedRef;
  /** Releases what the role holds besides its actors; called after the system has stopped. */
  close(): Promise<void>;
}

/** How a role starts threads. Default: the node's thread starts them itself. */
export type RoleThreads = Partial<Pick<NodeContext, "startThread">>;

/** Starts a role's actors on a node. */
export type StartRole = (system: ActorSystem) => RunningRole;

export function supervisionOf(role: Role): Supervision {
  return role.role === "dispatcher" ? role.supervision ?? {} : {};
}

export const JOURNAL_NAME = "dispatcher";

/** Loads the modules that a role needs. */
export interface RolePrograms {
  dispatcher(): Promise<typeof import("./dispatcher_role.ts")>;
  worker(): Promise<typeof import("./worker_role.ts")>;
  inlineRunners(): Promise<typeof import("../platform/threads/inline_runners.ts")>;
}

/**
 * Loads the modules of this role only. The returned function starts the role's actors synchronously:
 * no other node can reach this one before its actors exist.
 */
export async function loadRole(
  role: Role,
  programs: RolePrograms,
  threads: RoleThreads = {},
): Promise<StartRole> {
  switch (role.role) {
    case "dispatcher": {
      const { startDispatcher } = await programs.dispatcher();
      return (system) => startDispatcher(system, role);
    }
    case "worker": {
      const { startWorkerRole } = await programs.worker();
      const isInline = role.runners === "inline" && role.sandbox === undefined;
      if (!isInline) return (system) => startWorkerRole(system, role, threads);
      const { inlineRunners } = await programs.inlineRunners();
      return (system) => startWorkerRole(system, role, { runners: inlineRunners(role) });
    }
    case "proxy":
      return () => ({ close: () => Promise.resolve() });
  }
}
