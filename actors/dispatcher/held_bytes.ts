/**
 * Counts, per identity, the memory of datasets, of the parameters of jobs and clients, and of
 * iterations: their tables of splits and what their readers have read.
 */
import type { RequestOf } from "../runtime/protocol.ts";
import type { DispatcherProtocol } from "./protocol.ts";
import type { Places } from "./modes/deterministic/places.ts";
import type { SplitBounds } from "../../data/sharding/split_table.ts";
import type { Client, Dataset, Iteration, Job } from "./state/entities.ts";

type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;

/** Bytes counted per single number in a set of splits or consumers (`Places`). */
export const PLACE_BYTES = 8;
/** Bytes counted per range of consecutive numbers in such a set. */
const RANGE_BYTES = 64;
/**
 * Bytes counted per iteration besides what it lists, for its entries in the tables and the journal. So
 * the byte quotas also limit the repetitions of a named job.
 */
const ITERATION_BYTES = 512;
/** Bytes counted per consumer of a DETERMINISTIC iteration. */
const CONSUMER_BYTES = 128;
/** Bytes counted per source besides its splits: a pipeline may have thousands of small sources. */
const SOURCE_BYTES = 256;

/**
 * Bytes counted per dataset besides its graph and names, for its entries in the tables and the
 * journal. So the byte quotas also limit the number of datasets.
 */
export const DATASET_BYTES = 4 * 2 ** 10;

const encoder = new TextEncoder();

/** Bytes held per owner and in total. */
export class HeldBytes {
  readonly #ofOwner = new Map<string, number>();
  readonly #held = new Map<object, { readonly owner: string; readonly bytes: number }>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  bytesOf(owner: string): number {
    return this.#ofOwner.get(owner) ?? 0;
  }

  /** Counts an entity for its owner until it is removed. */
  add(owner: string, entity: object, bytes: number): void {
    this.#held.set(entity, { owner, bytes });
    this.#change(owner, bytes);
  }

  /** A counted entity takes so many bytes more, or fewer if negative. */
  grow(entity: object, bytes: number): void {
    const held = this.#held.get(entity);
    if (held === undefined) return;
    this.#held.set(entity, { owner: held.owner, bytes: held.bytes + bytes });
    this.#change(held.owner, bytes);
  }

  remove(entity: object): void {
    const held = this.#held.get(entity);
    if (held === undefined) return;
    this.#held.delete(entity);
    this.#change(held.owner, -held.bytes);
  }

  #change(owner: string, bytes: number): void {
    this.#total += bytes;
    const sum = this.bytesOf(owner) + bytes;
    if (sum === 0) this.#ofOwner.delete(owner);
    else this.#ofOwner.set(owner, sum);
  }
}

export function bytesOfDataset(
  { datasetId, graph, fingerprint }: Pick<Dataset, "datasetId" | "graph" | "fingerprint">,
): number {
  return DATASET_BYTES + graph.byteLength + bytesOfText(datasetId) + bytesOfText(fingerprint);
}

export function bytesOfJob({ name, parameters }: Pick<Job, "name" | "parameters">): number {
  return bytesOfText(name ?? "") + bytesOfText(JSON.stringify(parameters));
}

/** Bytes of the sets of splits, the consumers and the names of run and pass that an iteration holds. */
export function bytesOfIteration({ ordered, run }: Pick<Iteration, "ordered" | "run">): number {
  const { lost = [], done = [], consumers = null } = ordered ?? {};
  const reading = Object.values(consumers?.reading ?? {});
  const pass = consumers?.pass;
  return [lost, done, consumers?.left ?? [], ...reading.map((each) => each.done)]
    .reduce(
      (sum, places) => sum + bytesOfPlaces(places),
      ITERATION_BYTES + reading.length * CONSUMER_BYTES,
    ) +
    bytesOfText(run === null ? "" : run.stream + run.runId) +
    bytesOfText(pass === undefined ? "" : pass.stream + pass.begun);
}

/** Bytes of an iteration's table of splits, which a short pipeline can make large. */
export function bytesOfSplits(bounds: SplitBounds): number {
  return bounds.reduce((sum, ofSource) => sum + SOURCE_BYTES + ofSource.byteLength, 0);
}

export function bytesOfPlaces(places: Places): number {
  return places.reduce<number>(
    (sum, each) => sum + (typeof each === "number" ? PLACE_BYTES : RANGE_BYTES),
    0,
  );
}

export function bytesOfClient(
  { requestId, process }: Pick<Client, "requestId" | "process">,
): number {
  return bytesOfText(requestId) + bytesOfText(process ?? "");
}

/** An upper bound of the bytes that a request to open an iteration would add. */
export function bytesOfOpening(
  { requestId, process, jobName, stream, runId, parameters, behind = [] }: OpenRequest,
): number {
  const texts = [requestId, process, jobName, stream, runId, JSON.stringify(parameters)];
  return texts.reduce(
    (sum, text) => sum + bytesOfText(text ?? ""),
    ITERATION_BYTES + behind.length * PLACE_BYTES,
  );
}

function bytesOfText(text: string): number {
  return encoder.encode(text).byteLength;
}
