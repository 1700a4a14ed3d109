/** Registers a pipeline with a service, to be read by its id. */
import type { DatasetNode } from "../../data/node.ts";
import type { ElementCompression } from "../../data/service/element_compression.ts";
import { checkCompression, type DistributeOptions } from "../../data/operators/distribute.ts";
import { FIRST_ANSWER_TIMEOUT_MS, firstAnswer } from "./first_answer.ts";
import { type Credentials, definitionOf, type OpenHome } from "./starting.ts";

/** How a pipeline is registered. */
export interface RegisterOptions extends Credentials {
  /** The id under which it is known. Default: assigned by the dispatcher, the same for equal pipelines. */
  readonly datasetId?: string;
  /** How its elements are compressed on the wire. Default `"auto"`, see `DistributeOptions`. */
  readonly compression?: ElementCompression;
}

/** Registers a graph and resolves to its id. */
export async function registerGraph(
  node: DatasetNode,
  service: DistributeOptions["service"],
  { datasetId, token, ca, compression }: RegisterOptions,
  openHome: OpenHome,
): Promise<string> {
  checkCompression("registerDataset", compression);
  const definition = definitionOf(node, compression);
  const home = openHome(service, {
    ...(token === undefined ? {} : { token }),
    ...(ca === undefined ? {} : { ca }),
  });
  const { system, dispatcher, timings } = home;
  const request = { ...definition, ...(datasetId === undefined ? {} : { datasetId }) };
  try {
    const timeoutMs = timings?.firstAnswerTimeoutMs ?? FIRST_ANSWER_TIMEOUT_MS;
    const answer = await firstAnswer(
      dispatcher,
      timeoutMs,
      (askOptions) => system.ask(dispatcher, "registerDataset", request, askOptions),
    );
    return answer.datasetId;
  } finally {
    home.release();
  }
}
