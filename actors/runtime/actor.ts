/** What an actor consists of, and what it may use. */
import type { LeatError } from "../../core/error.ts";
import type { Access } from "./access.ts";
import type { Checks } from "./checks.ts";
import type { AnswerOf, Handlers, MethodOf, RequestOf } from "./protocol.ts";
import type { FencedRef, Ref } from "./ref.ts";
import type { Random, Timer, World } from "./world.ts";

/** One incarnation of an actor. */
export interface Actor<P> {
  readonly handlers: Handlers<P>;
  /** Checks the shapes of requests. A wrong one gets `invalid_argument`. Default: no checks. */
  readonly checks?: Checks<P>;
  /** Which roles may call which methods; the runtime refuses other calls. Default: only admins. */
  readonly access?: Access<P>;
  /** Runs before the first message; messages wait until it is done. */
  start?(): void | Promise<void>;
  /** Runs after the children have stopped; may still ask. `error`: why the actor died, if it did. */
  stop?(error: LeatError | undefined): void | Promise<void>;
}

export type ActorFactory<P> = (context: ActorContext<P>) => Actor<P>;

export interface AskOptions {
  /** When to give up, in ms. There is no ask without a deadline. */
  readonly timeoutMs: number;
  /**
   * Send the ask again (with the same id, so that it is handled once) each time this many ms have
   * passed without an answer, and, with a growing delay, each time the receiver is `unavailable`.
   * Left out: it is sent once.
   */
  readonly attemptMs?: number;
  /**
   * With `attemptMs`: how many times the receiver may be `unavailable` before the ask is rejected, so
   * that the asker can turn to another receiver. Left out: the ask is repeated until its deadline.
   */
  readonly unavailableMax?: number;
  /**
   * With `attemptMs`: the request may be handled twice. If its answer was lost, and is too large to
   * have been kept, it is made anew after a pause, instead of being rejected as `aborted`.
   */
  readonly isIdempotent?: true;
}

/** How a supervisor treats its children. */
export interface Supervision {
  /** More restarts than this within `periodMs` and the supervisor itself dies. Default 10. */
  readonly intensity?: number;
  /** The period of `intensity`, in ms. Default 60,000. */
  readonly periodMs?: number;
  /** Delay before the first restart, in ms; doubles with each within the period. Default 10. */
  readonly backoffMinMs?: number;
  /** Limit of the delay, in ms. Default 5,000. */
  readonly backoffMaxMs?: number;
}

/** What to start as a child, and what to do when it dies. */
export interface ChildSpec<P> {
  /** The last part of its path; unique among its siblings, without `/`. */
  readonly name: string;
  readonly create: ActorFactory<P>;
  /** A word for what it is, shown in inspection. Default: its name. */
  readonly kind?: string;
  /** When it dies, `permanent` (default) restarts it; `temporary` does not. */
  readonly restart?: "permanent" | "temporary";
  /**
   * Limit of waiting messages: more asks get `resource_exhausted`, tells are lost. Default 10,000.
   */
  readonly mailboxMax?: number;
  /** How long `stop()` may take before the actor is dropped, in ms. Default 5,000. */
  readonly stopTimeoutMs?: number;
  /** How it treats its own children. */
  readonly supervision?: Supervision;
}

/**
 * Why a watch ended. `ended`: the target's node reported that the target is gone. `closed`: the
 * other end closed the link, as when a process ends. `lost`: the target is unreachable for another
 * reason.
 */
export type WatchEnd = "ended" | "closed" | "lost";

export type WatchDown = (error: LeatError, end: WatchEnd) => void;

/**
 * What one incarnation of an actor may use. After its end `ask` rejects and `spawn` throws, both with
 * `cancelled`; `run` still runs its work, and the other methods do nothing.
 */
export interface ActorContext<P = unknown> {
  readonly self: FencedRef<P>;
  readonly world: World;
  readonly random: Random;
  /** Aborted when this incarnation ends. */
  readonly signal: AbortSignal;
  /**
   * Sends a message at most once, in order with other messages to the same actor. The sender does not
   * learn of a loss. A message that is too large or not plain data is dropped, with a warning in the log.
   */
  tell<Q, M extends MethodOf<Q>>(target: Ref<Q>, method: M, request: RequestOf<Q, M>): void;
  /**
   * Sends a message and waits for its answer.
   * @throws LeatError `deadline_exceeded` when no answer came in time, `unavailable` when the node
   * cannot be reached, `failed_precondition` when the reference is to an earlier incarnation,
   * `resource_exhausted` when the message is larger than the link carries, `invalid_argument` when it
   * is not plain data, `cancelled` when this incarnation ends, and any error of the receiver.
   */
  ask<Q, M extends MethodOf<Q>>(
    target: Ref<Q>,
    method: M,
    request: RequestOf<Q, M>,
    options: AskOptions,
  ): Promise<AnswerOf<Q, M>>;
  /** Calls `down` once, when the target ends, is unreachable or missing. The result stops the watch. */
  watch(target: Ref, down: WatchDown): () => void;
  /** Calls `up` when there is a link to the node, but opens none. The result cancels the call. */
  whenLinked(node: string, up: () => void): () => void;
  spawn<Q>(spec: ChildSpec<Q>): FencedRef<Q>;
  /** Stops a child, its own children first; does nothing when there is none of that name. */
  stopChild(name: string): Promise<void>;
  child(name: string): FencedRef | undefined;
  /** A timer, cancelled when this incarnation ends. An error in `fn` kills the actor. */
  timer(delayMs: number, fn: () => void): Timer;
  /** Runs work outside the handlers. An error in it, except `cancelled`, kills the actor. */
  run(work: () => Promise<void>): void;
}
