/** Snapshots: the state as plain data. In the journal, a snapshot replaces all earlier records. */
import { LeatError } from "../../../core/error.ts";
import { decodeMessage, encodeMessage } from "../../../transport/codec.ts";
import { copyBody } from "../../runtime/body.ts";
import type {
  Client,
  Dataset,
  Iteration,
  Job,
  ReleasedClient,
  StreamReaders,
  StreamRun,
  Task,
  Worker,
} from "../state/entities.ts";
import { bytesOfReaders, bytesOfRun } from "../modes/deterministic/stream_memory.ts";
import { modeOf } from "../modes/modes.ts";
import { type LastIds, Tables } from "../state/tables.ts";

const FORMAT = 2;

export interface StateSnapshot {
  readonly format: typeof FORMAT;
  readonly clusterId: string;
  /** How many times a dispatcher has started on this journal. */
  readonly lives: number;
  readonly lastIds: Readonly<LastIds>;
  readonly datasets: readonly Dataset[];
  readonly datasetOwners: readonly (readonly [datasetId: string, owner: string])[];
  /** Ids of the datasets that are removed once no job uses them. */
  readonly transient: readonly string[];
  readonly jobs: readonly Job[];
  readonly iterations: readonly Iteration[];
  readonly tasks: readonly Task[];
  readonly workers: readonly Worker[];
  readonly clients: readonly Client[];
  readonly released: readonly (ReleasedClient & { readonly clientId: number })[];
  readonly readers: readonly (readonly [key: string, readers: StreamReaders])[];
  readonly runs: readonly (readonly [stream: string, run: StreamRun])[];
}

/**
 * The tables as plain data. The entities are not copied, so encode the result before they change.
 */
export function snapshotOf(tables: Tables): StateSnapshot {
  const { clusterId, lives, lastIds } = tables;
  return {
    format: FORMAT,
    clusterId,
    lives,
    lastIds,
    datasets: [...tables.datasets.values()],
    datasetOwners: [...tables.datasetOwners],
    transient: [...tables.transient],
    jobs: [...tables.jobs.values()],
    iterations: [...tables.iterations.values()],
    tasks: [...tables.tasks.values()],
    workers: [...tables.workers.values()],
    clients: [...tables.clients.values()],
    released: [...tables.released].map(([clientId, client]) => ({ clientId, ...client })),
    readers: [...tables.readers],
    runs: [...tables.runs],
  };
}

/**
 * The tables of a snapshot; they share nothing with it.
 * @throws {LeatError} `unimplemented` for another format, `data_loss` for a damaged snapshot.
 */
export function tablesOf(snapshot: StateSnapshot): Tables {
  try {
    return filledTables(snapshot);
  } catch (error) {
    throw error instanceof LeatError ? error : unreadable(error);
  }
}

function filledTables(snapshot: StateSnapshot): Tables {
  if (snapshot.format !== FORMAT) {
    throw new LeatError(
      "unimplemented",
      `The journal holds a snapshot of format ${snapshot.format}, and this dispatcher reads format ` +
        `${FORMAT}; use the version that wrote it`,
    );
  }
  // A deep copy: the tables change their entities.
  const { clusterId, lives, lastIds, transient, readers, runs, ...entities } = copyBody(
    snapshot,
  ) as StateSnapshot;
  const tables = new Tables();
  Object.assign(tables, { clusterId, lives });
  Object.assign(tables.lastIds, lastIds);
  const owners = new Map(entities.datasetOwners);
  for (const dataset of entities.datasets) {
    tables.addDataset(dataset, owners.get(dataset.datasetId)!);
  }
  for (const datasetId of transient) tables.transient.add(datasetId);
  for (const job of entities.jobs) tables.addJob(job);
  for (const iteration of entities.iterations) {
    tables.addIteration(iteration, modeOf(tables, iteration).roundIndexFor(iteration));
  }
  for (const worker of entities.workers) tables.addWorker(worker);
  for (const task of entities.tasks) tables.addTask(task);
  // Snapshots of earlier programs lack `readBy`.
  for (const client of entities.clients) {
    tables.addClient({ ...client, readBy: client.readBy ?? null });
  }
  for (const { clientId, ...client } of entities.released) tables.released.set(clientId, client);
  for (const [key, each] of readers) tables.readers.set(key, each, bytesOfReaders(key, each));
  for (const [stream, run] of runs) tables.runs.set(stream, run, bytesOfRun(stream, run));
  return tables;
}

/** Default limit of a snapshot, in bytes. SQLite limits a value to 1 GB. */
export const SNAPSHOT_BYTES_MAX = 768 * 2 ** 20;

/** Encodes a snapshot. @throws {LeatError} `resource_exhausted` beyond `bytesMax`. */
export function encodeSnapshot(
  snapshot: StateSnapshot,
  bytesMax = SNAPSHOT_BYTES_MAX,
): Uint8Array {
  return encodeMessage(snapshot, { bytesMax });
}

/** Decodes a journaled snapshot. @throws {LeatError} `data_loss` for invalid bytes. */
export function decodeSnapshot(bytes: Uint8Array): StateSnapshot {
  try {
    return decodeMessage(bytes, { copy: true }) as StateSnapshot;
  } catch (error) {
    throw unreadable(error);
  }
}

function unreadable(cause: unknown): LeatError {
  return new LeatError("data_loss", "The snapshot in the journal cannot be read", { cause });
}
