/** Access to services through nodes of this process. A confined process accesses them through its host. */
import { checkCompression, type DistributeOptions } from "../../data/operators/distribute.ts";
import type { DatasetNode } from "../../data/node.ts";
import type { ElementCompression } from "../../data/service/reading_choices.ts";
import type { ReadingTask } from "../../data/service/reading_task.ts";
import type { DatasetDefinition, DispatcherProtocol } from "../dispatcher/protocol.ts";
import { dispatcherAnswers } from "../dispatcher/protocol_check.ts";
import type { AnswerOf, RequestOf } from "../runtime/protocol.ts";
import type { ClientOptions } from "./client.ts";
import type { Feed } from "./feed.ts";
import { FIRST_ANSWER_TIMEOUT_MS, firstAnswer } from "./first_answer.ts";
import {
  type ClientHome,
  type Credentials,
  datasetDefinition,
  type OpenHome,
  startClient,
} from "./starting.ts";
import { definedFields } from "../../core/tree.ts";

/** The options of a client, without the dispatcher's address. */
export type ReadingOptions = Omit<ClientOptions, "dispatcher">;

export interface ServiceAccess {
  /** Reads into `feed`. The returned function stops that. @throws LeatError for a bad request. */
  read(
    service: DistributeOptions["service"],
    credentials: Credentials,
    options: ReadingOptions,
    feed: Feed,
  ): () => void;
  /**
   * The definition of a registered dataset, for the task of a worker or for this program.
   * @throws LeatError `not_found`.
   */
  dataset(
    service: DistributeOptions["service"],
    credentials: Credentials,
    datasetId: string,
    forTask: ReadingTask | undefined,
  ): Promise<DatasetDefinition>;
}

/** Access through the nodes of this process. */
export function accessFrom(openHome: OpenHome): ServiceAccess {
  return {
    read: (service, credentials, options, feed) =>
      startClient(openHome(service, credentials), options, feed),
    dataset: async (service, credentials, datasetId, forTask) =>
      await askOnce(openHome(service, credentials), "getDataset", {
        datasetId,
        ...definedFields({ forTask }),
      }),
  };
}

/** How a pipeline is registered. */
export interface RegisterOptions extends Credentials {
  /** The dataset's id. Default: the dispatcher assigns one, the same for equal pipelines. */
  readonly datasetId?: string;
  /** How the elements are compressed on the wire. Default `"auto"`, see `DistributeOptions`. */
  readonly compression?: ElementCompression;
}

export async function registerGraph(
  node: DatasetNode,
  service: DistributeOptions["service"],
  { datasetId, token, ca, compression }: RegisterOptions,
  openHome: OpenHome,
): Promise<string> {
  checkCompression("registerDataset", compression);
  const definition = datasetDefinition(node, compression);
  const home = openHome(service, definedFields({ token, ca }));
  const request = { ...definition, ...(datasetId === undefined ? {} : { datasetId }) };
  return (await askOnce(home, "registerDataset", request)).datasetId;
}

/** Sends one request to the dispatcher, then releases the home. */
async function askOnce<M extends "getDataset" | "registerDataset">(
  { system, dispatcher, timings, release }: ClientHome,
  method: M,
  request: RequestOf<DispatcherProtocol, M>,
): Promise<AnswerOf<DispatcherProtocol, M>> {
  const timeoutMs = timings?.firstAnswerTimeoutMs ?? FIRST_ANSWER_TIMEOUT_MS;
  try {
    const answer = await firstAnswer(
      dispatcher,
      timeoutMs,
      (askOptions) => system.ask(dispatcher, method, request, askOptions),
    );
    return dispatcherAnswers[method](answer, dispatcher.node);
  } finally {
    release();
  }
}
