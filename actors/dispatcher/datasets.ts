/**
 * Registering pipelines.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { ElementCompression } from "../../data/element_compression.ts";
import type { RequestOf } from "../runtime/protocol.ts";
import type { Dataset } from "./entities.ts";
import type { DispatcherProtocol } from "./protocol.ts";
import type { DispatcherState } from "./state.ts";
import type { Turn } from "./turn.ts";

/** See `DispatcherProtocol.registerDataset`. */
export function registerDataset(
  turn: Turn,
  request: RequestOf<DispatcherProtocol, "registerDataset">,
): { readonly datasetId: string } {
  const { graph, fingerprint, cardinality, compression } = request;
  const known = request.datasetId === undefined
    ? turn.state.datasetLike(request)
    : turn.state.datasets.get(request.datasetId);
  if (known !== undefined) {
    if (isLike(known, request)) return { datasetId: known.datasetId };
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
  const datasetId = request.datasetId ?? newDatasetId(turn.state);
  turn.commit({
    type: "dataset_registered",
    datasetId,
    graph,
    fingerprint,
    cardinality,
    ...(compression === undefined ? {} : { compression }),
  });
  return { datasetId };
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

/** A number that nobody has chosen as a name. */
function newDatasetId(state: DispatcherState): string {
  let number = state.datasets.size + 1;
  while (state.datasets.has(`${number}`)) number++;
  return `${number}`;
}
