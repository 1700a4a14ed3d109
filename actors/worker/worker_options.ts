/** How a worker is set up. */
import type { LeatError } from "../../core/error.ts";
import type { DispatcherProtocol } from "../dispatcher/protocol.ts";
import type { ProcessUsage } from "../dispatcher/protocol_figures.ts";
import type { Ref } from "../runtime/ref.ts";
import type { ActorKind } from "../runtime/system.ts";
import type { RunnerFactory } from "./runner/runner.ts";

/** Times and limits of a worker that its operator may set. */
export interface WorkerLimits {
  /**
   * Time between heartbeats, in ms. Default 30,000. A third of the dispatcher's `workerTimeoutMs` if
   * that is less.
   */
  readonly heartbeatMs?: number;
  /** How long a task waits for a split of an unreachable dispatcher, in ms. Default one hour. */
  readonly dispatcherTimeoutMs?: number;
  /** Coordinated reads: how late a round may be before all consumers skip it, in ms. Default 100. */
  readonly skipAfterMs?: number;
  /**
   * Coordinated reads: while this many bytes of a task's rounds wait for slow consumers, the task
   * starts no later round. Default 256 MiB.
   */
  readonly roundsBytesMax?: number;
}

export interface WorkerOptions extends WorkerLimits {
  /** Stable and unique among workers: its advertised address, or a name given by the operator. */
  readonly name: string;
  readonly dispatcher: Ref<DispatcherProtocol>;
  readonly runners: RunnerFactory;
  readonly tags?: readonly string[];
  /** The name of this process: clients of the same process are local to the worker. */
  readonly process?: string;
  /** Only clients of its own process reach it. Default false. */
  readonly isPrivate?: boolean;
  /** Bytes that a task may produce ahead of requests. Default 64 MiB. */
  readonly aheadBytesMax?: number;
  /**
   * Draining: how long a client may take to acknowledge elements it was given, in ms. Default
   * 35,000: a client repeats a request with a lost answer after 30,000.
   */
  readonly acknowledgedWithinMs?: number;
  /** Total bytes of the windows of all shared tasks, in equal shares. Default 1 GiB. */
  readonly windowBytesMax?: number;
  /** The cache and scheduler actors that serve the tasks of shared and of coordinated jobs. */
  readonly proxies: { readonly cache: ActorKind; readonly reads: ActorKind };
  /** Nodes on which to start these actors. Default: this one. */
  readonly placement?: { readonly cache?: string; readonly reads?: string };
  /** What this process uses, as far as the platform can tell. */
  readonly usage?: () => ProcessUsage;
  /** Called when the dispatcher has refused this worker for good. The worker has no tasks then. */
  readonly onRefused?: (error: LeatError) => void;
}
