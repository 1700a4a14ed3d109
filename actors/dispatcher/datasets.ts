/**
 * Registering pipelines.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { ElementCompression } from "../../data/element_compression.ts";
import type { RequestOf } from "../runtime/protocol.ts";
import type { Dataset } from "./entities.ts";
import { checkName } from "./names.ts";
import type { DispatcherProtocol } from "./protocol.ts";
import type { DispatcherState } from "./state.ts";
import type { Turn } from "./turn.ts";

/** Bytes of a graph beyond which it is refused: most of it would be data. */
const GRAPH_BYTES_MAX = 128 * 2 ** 20;

type RegisterRequest = RequestOf<DispatcherProtocol, "registerDataset">;

/** See `DispatcherProtocol.registerDataset`. */
export function registerDataset(
  turn: Turn,
  request: RegisterRequest,
): { readonly datasetId: string } {
  const { graph, fingerprint, cardinality, compression } = request;
  const known = request.datasetId === undefined
    ? turn.state.datasetLike(request)
    : turn.state.datasets.get(request.datasetId);
  if (known !== undefined) {
    if (isLike(known, request)) return answerKnown(turn, known, request);
    if (known.fingerprint === fingerprint) throw compressedOtherwise(known, compression);
    throw new LeatError(
      "already_exists",
      `The dataset id "${known.datasetId}" is taken by a dataset with fingerprint ${known.fingerprint}; ` +
        `got one with fingerprint ${fingerprint}. Choose another id, or leave it out`,
    );
  }
  if (request.datasetId === "") {
    throw new LeatError(
      "invalid_argument",
      "datasetId must not be empty; leave it out to be given one",
    );
  }
  if (request.datasetId !== undefined) checkName("datasetId", request.datasetId);
  checkGraph(graph);
  const datasetId = request.datasetId ?? `${turn.state.nextDatasetId}`;
  turn.commit({
    type: "dataset_registered",
    datasetId,
    graph,
    fingerprint,
    cardinality,
    ...(compression === undefined ? {} : { compression }),
    ...(request.transient === true ? { transient: true } : {}),
  });
  return { datasetId };
}

/** Who registers it to have its id keeps what others have registered for their jobs alone. */
function answerKnown(
  { state, commit }: Turn,
  { datasetId }: Dataset,
  { transient }: RegisterRequest,
): { readonly datasetId: string } {
  if (transient !== true && state.transientDatasets.has(datasetId)) {
    commit({ type: "dataset_kept", datasetId });
  }
  return { datasetId };
}

/** The transient datasets that no job uses. */
export function unusedDatasets(state: DispatcherState): string[] {
  if (state.transientDatasets.size === 0) return [];
  const used = new Set([...state.jobs.values()].map(({ parameters }) => parameters.datasetId));
  return [...state.transientDatasets].filter((datasetId) => !used.has(datasetId));
}

function checkGraph({ byteLength }: Uint8Array): void {
  if (byteLength <= GRAPH_BYTES_MAX) return;
  throw new LeatError(
    "invalid_argument",
    `The pipeline is ${byteLength} bytes long, and a dispatcher takes ${GRAPH_BYTES_MAX} at most: it is kept ` +
      `in the journal and goes to every worker. Read the data that is in it, or captured by it, from files`,
  );
}

function isLike(known: Dataset, { fingerprint, compression }: Partial<Dataset>): boolean {
  return known.fingerprint === fingerprint && known.compression === compression;
}

function compressedOtherwise(
  { datasetId, compression: known }: Dataset,
  compression: Dataset["compression"],
): LeatError {
  const before: ElementCompression = known ?? "auto";
  return new LeatError(
    "already_exists",
    `The dataset id "${datasetId}" is taken by the same dataset with compression "${before}"; got ` +
      `"${compression ?? "auto"}". Choose another id, or leave it out`,
  );
}

/** The dataset of that id. @throws {LeatError} `not_found`. */
export function datasetOf(state: DispatcherState, datasetId: string): Dataset {
  const dataset = state.datasets.get(datasetId);
  if (dataset !== undefined) return dataset;
  throw new LeatError(
    "not_found",
    `No dataset is registered here under "${datasetId}"; register it with this dispatcher first`,
  );
}
