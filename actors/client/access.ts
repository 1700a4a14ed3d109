/** How iterators reach services: from a node of this process, or through another thread. */
import type { DistributeOptions } from "../../data/operators/distribute.ts";
import type { DatasetDefinition } from "../dispatcher/protocol.ts";
import type { ClientOptions } from "./client.ts";
import type { Feed } from "./feed.ts";
import { FIRST_ANSWER_TIMEOUT_MS, firstAnswer } from "./first_answer.ts";
import { type Credentials, type OpenHome, startClient } from "./starting.ts";

/** What to read; the address is given apart. */
export type ReadingOptions = Omit<ClientOptions, "dispatcher">;

export interface ServiceAccess {
  /** Reads into `feed`; returns how to stop. @throws LeatError for a bad address or request. */
  read(
    service: DistributeOptions["service"],
    credentials: Credentials,
    options: ReadingOptions,
    feed: Feed,
  ): () => void;
  /** The definition of a registered dataset. @throws LeatError `not_found`. */
  dataset(
    service: DistributeOptions["service"],
    credentials: Credentials,
    datasetId: string,
  ): Promise<DatasetDefinition>;
}

/** Access through the nodes of this process. */
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
          (askOptions) => system.ask(dispatcher, "getDataset", { datasetId }, askOptions),
        );
      } finally {
        release();
      }
    },
  };
}
