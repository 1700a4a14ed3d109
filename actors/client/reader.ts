/**
 * What the two ways of reading have in common: first come first served, and in rounds.
 *
 * @module
 */
import type { DispatcherProtocol, TaskSource } from "../dispatcher/protocol.ts";
import type { OrderFigures, ReadFigures } from "../dispatcher/protocol_figures.ts";
import type { ActorContext } from "../runtime/actor.ts";
import type { AnswerOf, RequestOf } from "../runtime/protocol.ts";
import type { FencedRef } from "../runtime/ref.ts";
import type { ClientOptions } from "./client.ts";
import type { Feed } from "./feed.ts";

/** Bytes waiting for the training loop beyond which nothing more is asked for, unless the user says otherwise. */
export const BUFFER_BYTES_MAX = 256 * 2 ** 20;

/** What a client says of itself in a heartbeat. */
export type HeartbeatReport = Omit<RequestOf<DispatcherProtocol, "clientHeartbeat">, "clientId">;
/** What it hears. */
export type HeartbeatNews = AnswerOf<DispatcherProtocol, "clientHeartbeat">;

/** How the tasks that can be read have changed. */
export interface TaskChanges {
  /** They are read no more, or elsewhere. */
  readonly gone: readonly number[];
  readonly come: readonly TaskSource[];
}

/** A way of reading the tasks of an iteration. */
export interface Reader {
  /** Requests that are open now. */
  readonly inFlight: number;
  /** Size of what has arrived and cannot be given on before something else, in bytes. */
  readonly earlyBytes: number;
  /** DETERMINISTIC: what the order costs. */
  readonly orderFigures?: OrderFigures;
  /** How it goes with each task. */
  readonly tasks: Iterable<ReadFigures>;
  /** The dispatcher has let the client in. */
  joined(clientId: number): void;
  /** What to say in the next heartbeat. */
  report(): HeartbeatReport;
  /** What a heartbeat brought. */
  learn(news: Omit<HeartbeatNews, "tasks">, changes: TaskChanges): void;
  /**
   * A source drains: asks once more for what it may have given in vain. Answers up to which request
   * everything of it has arrived; nothing where it is read no more.
   */
  askAgain?(source: FencedRef): number | undefined;
  /** Asks for as much as there is room for. */
  pump(): void;
  stop(): void;
}

/** Counts that only grow. */
export interface ReadTotals {
  unpackingMs: number;
  wireBytes: number;
}

/** What a reader is made of. */
export interface ReaderSurroundings {
  readonly context: ActorContext;
  readonly options: ClientOptions;
  readonly feed: Feed;
  /** What all tasks have come to, those that are over included. */
  readonly totals: ReadTotals;
  /** Asks for a heartbeat now. */
  readonly refresh: () => void;
}
