/**
 * What the two ways of reading have in common: first come first served, and in rounds.
 *
 * @module
 */
import type { DispatcherProtocol, TaskSource } from "../dispatcher/protocol.ts";
import type { OrderFigures } from "../dispatcher/protocol_figures.ts";
import { ElementFetcher } from "../elements/fetcher.ts";
import type { ActorContext } from "../runtime/actor.ts";
import type { AnswerOf, RequestOf } from "../runtime/protocol.ts";
import type { ClientOptions } from "./client.ts";
import type { Feed } from "./feed.ts";

/** What a client says of itself in a heartbeat. */
export type HeartbeatReport = Omit<RequestOf<DispatcherProtocol, "clientHeartbeat">, "clientId">;
/** What it hears. */
export type HeartbeatNews = AnswerOf<DispatcherProtocol, "clientHeartbeat">;

/** A way of reading the tasks of an iteration. */
export interface Reader {
  /** Requests that are open now. */
  readonly inFlight: number;
  /** Size of what has arrived and cannot be given on before something else, in bytes. */
  readonly earlyBytes: number;
  /** DETERMINISTIC: what the order costs. */
  readonly orderFigures?: OrderFigures;
  /** The dispatcher has let the client in. */
  joined(clientId: number): void;
  /** What to say in the next heartbeat. */
  report(): HeartbeatReport;
  /** What a heartbeat brought. */
  learn(news: HeartbeatNews): void;
  /** Asks for as much as there is room for. */
  pump(): void;
  stop(): void;
}

/** What a reader is made of. */
export interface ReaderSurroundings {
  readonly context: ActorContext;
  readonly options: ClientOptions;
  readonly feed: Feed;
  /** Asks for a heartbeat now. */
  readonly refresh: () => void;
}

/** Names one source of a task. */
export function sourceKey({ taskId, source }: TaskSource): string {
  return `${taskId} ${source.incarnation}`;
}

/** The fetcher of a task. */
export function fetcherOf(
  { context, options }: ReaderSurroundings,
  clientId: number,
  { source, worker }: TaskSource,
  onUnreachable: () => void,
): ElementFetcher {
  const { trainerId, consumerIndex, requestTimeoutMs = 30_000 } = options;
  let warned = false;
  const fetcher: ElementFetcher = new ElementFetcher(context, source, {
    clientId,
    requestTimeoutMs,
    onUnreachable: (error) => {
      onUnreachable();
      // One that has answered before is a worker lost, which is the dispatcher's business.
      if (warned || fetcher.hasAnswered) return;
      warned = true;
      context.world.log(
        "warn",
        `Cannot read from worker "${worker}" at ${source.node}, the address that the dispatcher at ` +
          `${options.dispatcher.node} gives for it: ${error.message}. Reading goes on without it`,
      );
    },
    ...(trainerId === undefined ? {} : { trainerId }),
    ...(consumerIndex === undefined ? {} : { consumerIndex }),
  });
  return fetcher;
}
