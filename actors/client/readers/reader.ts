/** The interface of all reading modes. */
import type { DispatcherProtocol, TaskSource } from "../../dispatcher/protocol.ts";
import type { ReadFigures } from "../../dispatcher/protocol_figures.ts";
import type { ReaderReport } from "../../dispatcher/protocol_heartbeats.ts";
import type { Reported } from "../../dispatcher/protocol_metrics.ts";
import type { ActorContext } from "../../runtime/actor.ts";
import type { AnswerOf } from "../../runtime/protocol.ts";
import type { FencedRef } from "../../runtime/ref.ts";
import type { ClientOptions } from "../client.ts";
import type { Feed } from "../feed.ts";
import type { UnreadTasks } from "../unreached.ts";

/**
 * Default limit of the bytes that wait for the training loop. Above it nothing more is requested.
 */
export const BUFFER_BYTES_MAX = 256 * 2 ** 20;

export type HeartbeatNews = AnswerOf<DispatcherProtocol, "clientHeartbeat">;

/** How the list of readable tasks has changed. */
export interface TaskChanges {
  /** Tasks that are no longer read, or that are read from another source from now on. */
  readonly removed: readonly number[];
  readonly added: readonly TaskSource[];
}

/** Reads the tasks of an iteration in one mode. */
export interface Reader {
  /** Requests open now. */
  readonly inFlight: number;
  /** Bytes that have arrived but wait for earlier elements. */
  readonly earlyBytes: number;
  /** DETERMINISTIC: what keeping the order costs. */
  readonly orderFigures?: Reported<"order">;
  readonly tasks: Iterable<ReadFigures>;
  /** Coordinated reads: the next round to request; undefined before the first. */
  readonly nextRound?: number | undefined;
  joined(clientId: number): void;
  report(): ReaderReport | undefined;
  update(answer: Pick<HeartbeatNews, "news" | "finished">, changes: TaskChanges): void;
  /**
   * Repeats the open requests to a draining source. Returns the number of the last request up to
   * which all answers have arrived; undefined if the source is no longer read.
   */
  askAgain?(source: FencedRef): number | undefined;
  /** Requests as much as there is space for. */
  pump(): void;
  stop(): void;
}

/** Counts that never decrease. */
export interface ReadTotals {
  unpackingMs: number;
  wireBytes: number;
}

export interface ReaderDependencies {
  readonly context: ActorContext;
  readonly options: ClientOptions;
  readonly feed: Feed;
  /** Totals over all tasks, ended ones included. */
  readonly totals: ReadTotals;
  readonly unread: UnreadTasks;
  /** Asks for a heartbeat now. */
  readonly refresh: () => void;
}
