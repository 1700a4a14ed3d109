/** The roles of nodes as plain data; each starts alike on a thread, in a process, or inline. */
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
  /** The folder of its journal. Default: in memory. */
  readonly journalFolder?: string;
  readonly config?: Omit<DispatcherConfig, "logName" | "wrapJournal" | "dialWorker">;
  /** How its node supervises it when its journal fails. Default: like any actor. */
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
  /** Where pipelines run: on threads of their own (default), or in the node's. */
  readonly runners?: "thread" | "inline";
  /** Whether the process is this worker's alone: then its usage is the worker's. Default false. */
  readonly ownProcess?: boolean;
  /** Runs pipelines in confined processes; the running program needs permission to start them. */
  readonly sandbox?: SandboxGrants;
  /** Without a sandbox: how long a thread may ignore the request to end, in ms. */
  readonly runawayAfterMs?: number;
}

/** A node for caches and schedulers only. */
export interface FrontRole {
  readonly role: "front";
}

export type Role = DispatcherRole | WorkerRole | FrontRole;

export interface Playing {
  readonly actor?: FencedRef;
  /** Releases what the role holds besides its actors; called after the system has stopped. */
  close(): Promise<void>;
}

/** How a role starts threads. Default: below the node's own. */
export type RoleThreads = Partial<Pick<NodeContext, "startThread">>;

/** Starts a role's actors on a node. */
export type TakeUp = (system: ActorSystem) => Playing;

export function supervisionOf(role: Role): Supervision {
  return role.role === "dispatcher" ? role.supervision ?? {} : {};
}

export const JOURNAL_NAME = "dispatcher";

export interface RolePrograms {
  dispatcher(): Promise<typeof import("./dispatcher_role.ts")>;
  worker(): Promise<typeof import("./worker_role.ts")>;
  inlineRunners(): Promise<typeof import("../platform/threads/inline_runners.ts")>;
}

/**
 * Loads the program of this role only. The returned function starts its actors synchronously: a
 * node that can be reached has them.
 */
export async function loadRole(
  role: Role,
  programs: RolePrograms,
  threads: RoleThreads = {},
): Promise<TakeUp> {
  switch (role.role) {
    case "dispatcher": {
      const { startDispatcher } = await programs.dispatcher();
      return (system) => startDispatcher(system, role);
    }
    case "worker": {
      const { takeUpWorker } = await programs.worker();
      const isInline = role.runners === "inline" && role.sandbox === undefined;
      if (!isInline) return (system) => takeUpWorker(system, role, threads);
      const { inlineRunners } = await programs.inlineRunners();
      return (system) => takeUpWorker(system, role, { runners: inlineRunners(role) });
    }
    case "front":
      return () => ({ close: () => Promise.resolve() });
  }
}
