/**
 * How the journal's records change the clients.
 *
 * @module
 */
import type { Iteration, SaveEnd, StreamReaders } from "./entities.ts";
import { join, leave } from "./ordered_state.ts";
import type { RecordOf } from "./records.ts";
import { need, type Tables } from "./tables.ts";

/** How many released clients are remembered, to be told what became of them. Beyond it the oldest is forgotten. */
const RELEASED_CLIENTS_KEPT = 1_000;

/** The same of streams of which is remembered who has read them. */
const STREAMS_KEPT = 4_096;

export function opened(tables: Tables, record: RecordOf<"client_opened">): void {
  const { clientId, iterationId, requestId, consumerIndex, process = null } = record;
  const { startAt = 0, behind, stream } = record;
  const { ordered } = need(tables.iterations.get(iterationId), record);
  if (ordered?.consumers && consumerIndex !== null) {
    join(ordered, consumerIndex, { startAt, behind });
  }
  const client = { clientId, iterationId, requestId, consumerIndex, process };
  tables.addClient({ ...client, firstVersion: null });
  if (stream !== undefined) noteReader(tables.streams, stream, record);
}

function noteReader(
  streams: Map<string, StreamReaders>,
  stream: string,
  { clientId, consumerIndex, restoration, supersedes }: RecordOf<"client_opened">,
): void {
  const readers = streams.get(stream) ?? { newest: [], restorations: [], oldest: null };
  const { newest, restorations } = readers;
  const at = consumerIndex ?? 0;
  for (let i = newest.length; i < at; i++) [newest[i], restorations[i]] = [0, ""];
  newest[at] = clientId;
  restorations[at] = restoration ?? restorations[at] ?? "";
  if (supersedes === true) readers.oldest = clientId;
  // At the end, as the newest.
  streams.delete(stream);
  streams.set(stream, readers);
  trimOldest(streams, STREAMS_KEPT);
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
