/**
 * How iterators reach services: from a node of this process, or through somebody who may.
 *
 * @module
 */
import type { DistributeOptions } from "../../data/operators/distribute.ts";
import type { DatasetDefinition } from "../dispatcher/protocol.ts";
import type { ClientOptions } from "./client.ts";
import type { Feed } from "./feed.ts";
import { FIRST_ANSWER_TIMEOUT_MS, firstAnswer } from "./first_answer.ts";
import { type Credentials, type OpenHome, startClient } from "./starting.ts";

/** What to read, but for where. */
export type ReadingOptions = Omit<ClientOptions, "dispatcher">;

/** See the module. */
export interface ServiceAccess {
  /**
   * Begins to read: feeds `feed`, and answers how that is stopped.
   *
   * @throws LeatError when the address makes no sense, or what is asked for does not.
   */
  read(
    service: DistributeOptions["service"],
    credentials: Credentials,
    options: ReadingOptions,
    feed: Feed,
  ): () => void;
  /** A dataset that was registered. @throws LeatError `not_found`. */
  dataset(
    service: DistributeOptions["service"],
    credentials: Credentials,
    datasetId: string,
  ): Promise<DatasetDefinition>;
}

/** Access from nodes of this process. */
export function accessFrom(openHome: OpenHome): ServiceAccess {
  return {
    read: (service, credentials, options, feed) =>
      startClient(openHome(service, credentials), options, feed),
    async dataset(service, credentials, datasetId) {
      const { system, dispatcher, timings, release } = openHome(service, credentials);
      const timeoutMs = timings?.firstAnswerTimeoutMs ?? FIRST_ANSWER_TIMEOUT_MS;
      try {
        return await firstAnswer(
          dispatcher,
          timeoutMs,
          (patience) => system.ask(dispatcher, "getDataset", { datasetId }, patience),
        );
      } finally {
        release();
      }
    },
  };
}
