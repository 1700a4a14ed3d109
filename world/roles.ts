/**
 * What a node of the service is for, as plain data, and how it is started: the same on a thread, in
 * a process of its own, and beside others in one thread.
 *
 * @module
 */
import type { DispatcherConfig } from "../actors/dispatcher/config.ts";
import type { Supervision } from "../actors/runtime/actor.ts";
import type { FencedRef } from "../actors/runtime/ref.ts";
import type { ActorSystem } from "../actors/runtime/system.ts";
import type { WorkerOptions } from "../actors/worker/worker.ts";
import type { NodeContext } from "../transport/thread_control.ts";
import type { SandboxGrants } from "./sandbox/grants.ts";
import type { WorkerStorage } from "./storage.ts";

/** A node that keeps the service's books. */
export interface DispatcherRole {
  readonly role: "dispatcher";
  /** The folder of its journal. Without it the journal is kept in memory. */
  readonly journalFolder?: string;
  readonly config?: Omit<DispatcherConfig, "logName" | "wrapJournal" | "dialWorker">;
  /** How its node treats it when its journal fails. Default: as any actor. */
  readonly supervision?: Supervision;
}

/** A node that produces elements. */
export interface WorkerRole extends WorkerStorage {
  readonly role: "worker";
  /** The dispatcher's node. */
  readonly dispatcher: string;
  readonly config:
    & Pick<WorkerOptions, "name" | "tags" | "heartbeatMs" | "dispatcherTimeoutMs">
    & Pick<WorkerOptions, "windowBytesMax" | "skipAfterMs" | "roundsBytesMax" | "placement">
    & Pick<WorkerOptions, "process" | "isPrivate">;
  /** Where pipelines run: on threads of their own (default), or in the node's. */
  readonly runners?: "thread" | "inline";
  /** Whether the process is this worker's alone, so that what it uses is the worker's. Default false. */
  readonly ownProcess?: boolean;
  /** Runs pipelines in confined processes, which the running program has to be allowed to start. */
  readonly sandbox?: SandboxGrants;
  /** Without it: after how long a thread that was told to end counts as one that cannot be ended, in ms. */
  readonly runawayAfterMs?: number;
}

/** A node on which caches and schedulers may be placed, and nothing else. */
export interface FrontRole {
  readonly role: "front";
}

/** What a node is for. */
export type Role = DispatcherRole | WorkerRole | FrontRole;

/** A role that has been taken up. */
export interface Playing {
  /** The dispatcher or worker. */
  readonly actor?: FencedRef;
  /** Lets go of what the role holds beside its actors; called after the system has stopped. */
  close(): Promise<void>;
}

/** How a role comes by threads. Default: below the node's own. */
export type RoleThreads = Partial<Pick<NodeContext, "startThread">>;

/** Starts a role's actors on a node. */
export type TakeUp = (system: ActorSystem) => Playing;

/** How a node treats the actors of its role. */
export function supervisionOf(role: Role): Supervision {
  return role.role === "dispatcher" ? role.supervision ?? {} : {};
}

/** The name of the dispatcher's journal in its folder. */
export const JOURNAL_NAME = "dispatcher";

/** How the program of a role is loaded. */
export interface RolePrograms {
  dispatcher(): Promise<typeof import("./dispatcher_role.ts")>;
  worker(): Promise<typeof import("./worker_role.ts")>;
  inlineRunners(): Promise<typeof import("./inline_runners.ts")>;
}

/**
 * Loads the program of a role and no other's, so that a node's thread is there the sooner. The answer
 * starts its actors at once: whoever reaches the node finds them.
 */
export async function loadRole(
  role: Role,
  programs: RolePrograms,
  threads: RoleThreads = {},
): Promise<TakeUp> {
  switch (role.role) {
    case "dispatcher": {
      const { takeUpDispatcher } = await programs.dispatcher();
      return (system) => takeUpDispatcher(system, role);
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
