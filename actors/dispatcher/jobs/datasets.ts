/** Registering pipelines. */
import { LeatError } from "../../../core/error.ts";
import type { ElementCompression } from "../../../data/service/reading_choices.ts";
import { ownBytes } from "../../../core/bytes.ts";
import { hashBytes } from "../../../core/hash.ts";
import type { Identity } from "../../runtime/identity.ts";
import type { RequestOf } from "../../runtime/protocol.ts";
import type { Dataset } from "../state/entities.ts";
import type { DispatcherProtocol } from "../protocol.ts";
import { bytesOfDataset } from "../held_bytes.ts";
import { checkDatasetBytes, type Quotas } from "./quotas.ts";
import type { DispatcherState } from "../state/state.ts";
import type { Transaction } from "../transaction.ts";

/** The format of ids that the dispatcher assigns. */
const DIGITS = /^[0-9]+$/;

type RegisterRequest = RequestOf<DispatcherProtocol, "registerDataset">;

export function registerDataset(
  tx: Transaction,
  request: RegisterRequest,
  sender: Identity,
  quotas: Quotas,
): { readonly datasetId: string } {
  const { graph, fingerprint, cardinality, compression } = request;
  checkGraph(graph, fingerprint, quotas);
  const known = request.datasetId === undefined
    ? ownDatasetLike(tx.state, request, sender)
    : tx.state.datasets.has(request.datasetId)
    ? datasetFor(tx.state, request.datasetId, sender)
    : undefined;
  if (known !== undefined) {
    const isLike = known.fingerprint === fingerprint && known.compression === compression;
    if (isLike) return answerKnown(tx, known, request);
    if (known.fingerprint === fingerprint) throw otherCompression(known, compression);
    throw new LeatError(
      "already_exists",
      `The dataset id "${known.datasetId}" is taken by a dataset with fingerprint ${known.fingerprint}; ` +
        `got one with fingerprint ${fingerprint}. Choose another id, or leave it out`,
    );
  }
  if (request.datasetId === "") {
    throw new LeatError(
      "invalid_argument",
      "datasetId must not be empty; leave it out, and the dispatcher assigns one",
    );
  }
  if (request.datasetId !== undefined) {
    if (DIGITS.test(request.datasetId)) {
      throw new LeatError(
        "invalid_argument",
        `Only the dispatcher assigns ids of digits alone, such as "${request.datasetId}"; choose ` +
          "another id, or leave it out",
      );
    }
  }
  const datasetId = request.datasetId ?? `${tx.state.nextId("dataset")}`;
  const bytes = bytesOfDataset({ datasetId, graph, fingerprint });
  checkDatasetBytes(tx.state, sender.name, bytes, quotas);
  tx.append({
    type: "dataset_registered",
    owner: sender.name,
    datasetId,
    graph: ownBytes(graph),
    fingerprint,
    cardinality,
    ...(compression === undefined ? {} : { compression }),
    ...(request.transient === true ? { transient: true } : {}),
  });
  return { datasetId };
}

function ownDatasetLike(
  state: DispatcherState,
  request: RegisterRequest,
  sender: Identity,
): Dataset | undefined {
  for (const dataset of state.datasetsLike(request)) {
    if (isOwn(state, dataset.datasetId, sender)) return dataset;
  }
  return undefined;
}

/** Makes a transient dataset permanent, if this request does not call it transient. */
function answerKnown(
  { state, append }: Transaction,
  { datasetId }: Dataset,
  { transient }: RegisterRequest,
): { readonly datasetId: string } {
  if (transient !== true && state.transientDatasets.has(datasetId)) {
    append({ type: "dataset_kept", datasetId });
  }
  return { datasetId };
}

export function unusedDatasets(state: DispatcherState): string[] {
  if (state.transientDatasets.size === 0) return [];
  const used = new Set([...state.jobs.values()].map(({ parameters }) => parameters.datasetId));
  return [...state.transientDatasets].filter((datasetId) => !used.has(datasetId));
}

function checkGraph(graph: Uint8Array, fingerprint: string, { datasetBytesMax }: Quotas): void {
  if (graph.byteLength === 0) throw new LeatError("invalid_argument", "The pipeline is empty");
  if (graph.byteLength > datasetBytesMax) {
    throw new LeatError(
      "resource_exhausted",
      `The pipeline has ${graph.byteLength} bytes, and this dispatcher accepts at most ` +
        `${datasetBytesMax} (datasetBytesMax): the journal keeps it, and every worker gets it. Read ` +
        "data from files instead of putting it into the pipeline or its captures",
    );
  }
  // Pipelines with equal fingerprints share an id: with a forged one, others would get this
  // pipeline.
  if (fingerprint === hashBytes(graph)) return;
  throw new LeatError(
    "invalid_argument",
    `"${fingerprint}" is not the fingerprint of the pipeline`,
  );
}

/** Whether the sender owns the dataset or is an admin. */
function isOwn(state: DispatcherState, datasetId: string, { name, role }: Identity): boolean {
  return role === "admin" || state.ownerOfDataset(datasetId) === name;
}

function otherCompression(
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

/** The dataset with that id. @throws LeatError `not_found`. */
export function datasetOf(state: DispatcherState, datasetId: string): Dataset {
  const dataset = state.datasets.get(datasetId);
  if (dataset !== undefined) return dataset;
  throw new LeatError(
    "not_found",
    `This dispatcher has no dataset "${datasetId}"; register it with this dispatcher first`,
  );
}

/**
 * The dataset with that id, if the sender may read it.
 * @throws LeatError `not_found`; `permission_denied` for others' transient datasets.
 */
export function datasetFor(state: DispatcherState, datasetId: string, sender: Identity): Dataset {
  const dataset = datasetOf(state, datasetId);
  if (!state.transientDatasets.has(datasetId) || isOwn(state, datasetId, sender)) return dataset;
  throw new LeatError(
    "permission_denied",
    `The dataset "${datasetId}" belongs to jobs of "${
      state.ownerOfDataset(datasetId)
    }", and this ` +
      `request is from "${sender.name}"; to read it, register it (registerDataset) without that id`,
  );
}
