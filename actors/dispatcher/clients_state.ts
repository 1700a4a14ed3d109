/**
 * How the journal's records change the clients.
 *
 * @module
 */
import type { Iteration, SaveEnd } from "./entities.ts";
import { join, leave } from "./ordered_state.ts";
import type { RecordOf } from "./records.ts";
import { need, type Tables } from "./tables.ts";

/** How many released clients are remembered, to be told what became of them. Beyond it the oldest is forgotten. */
const RELEASED_CLIENTS_KEPT = 1_000;

/** The same of readers of streams: as many as a job can have. */
const STREAMS_KEPT = 65_536;

export function opened(tables: Tables, record: RecordOf<"client_opened">): void {
  const { type: _, process = null, startAt, behind, ...client } = record;
  const { clientId, consumerIndex } = client;
  const { jobId, ordered } = need(tables.iterations.get(client.iterationId), record);
  if (ordered?.consumers && consumerIndex !== null) {
    join(ordered, consumerIndex, { startAt: startAt ?? 0, behind });
  }
  tables.addClient({ ...client, process, firstVersion: null });
  const name = tables.jobs.get(jobId)?.name ?? null;
  if (ordered === null || name === null) return;
  const key = streamKey(name, consumerIndex);
  const restored = tables.streamReaders.get(key)?.restored ?? null;
  // At the end, as the newest.
  tables.streamReaders.delete(key);
  tables.streamReaders.set(key, {
    newest: clientId,
    restored: startAt === undefined ? restored : clientId,
  });
  trimOldest(tables.streamReaders, STREAMS_KEPT);
}

/** Names a job's stream, or a consumer's share of it. */
export function streamKey(jobName: string, consumerIndex: number | null): string {
  return `${consumerIndex ?? ""}/${jobName}`;
}

export function released(tables: Tables, record: RecordOf<"client_released">): void {
  const client = need(tables.clients.get(record.clientId), record);
  const { clientId, iterationId, consumerIndex } = client;
  tables.removeClient(client);
  const iteration = need(tables.iterations.get(iterationId), record);
  const { rounds, ordered } = iteration;
  const saveEnd = saveEndOf(tables, iteration);
  tables.released.set(clientId, { iterationId, ...(saveEnd === undefined ? {} : { saveEnd }) });
  trimOldest(tables.released, RELEASED_CLIENTS_KEPT);
  if (ordered?.consumers && consumerIndex !== null) leave(ordered, consumerIndex);
  rounds.reached = Math.max(rounds.reached, record.nextRound ?? 0);
}

function saveEndOf(tables: Tables, iteration: Iteration): SaveEnd | undefined {
  const { jobId, saving, splitsError: error } = iteration;
  if (tables.jobs.get(jobId)?.parameters.save === undefined) return undefined;
  return error !== null || saving?.isWhole === true ? { error } : undefined;
}

function trimOldest<K, V>(map: Map<K, V>, sizeMax: number): void {
  for (const key of map.keys()) {
    if (map.size <= sizeMax) return;
    map.delete(key);
  }
}
