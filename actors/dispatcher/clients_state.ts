/**
 * How the journal's records change the clients.
 *
 * @module
 */
import type { Iteration, SaveEnd, StreamReaders } from "./entities.ts";
import { join, leave } from "./ordered_state.ts";
import type { RecordOf } from "./records.ts";
import { cameInRun, pass } from "./stream_runs_state.ts";
import { need, type Tables } from "./tables.ts";

/** How many released clients are remembered, to be told what became of them. Beyond it the oldest is forgotten. */
const RELEASED_CLIENTS_KEPT = 1_000;

/** The same of streams, and of their consumers, of which is remembered who they were. */
const READERS_KEPT = 65_536;

export function opened(tables: Tables, record: RecordOf<"client_opened">): void {
  const { clientId, iterationId, requestId, consumerIndex, secret = null, process = null } = record;
  const { startAt = 0, behind, stream } = record;
  const iteration = need(tables.iterations.get(iterationId), record);
  const { ordered } = iteration;
  if (ordered?.consumers && consumerIndex !== null) {
    join(ordered, consumerIndex, { startAt, behind });
  }
  const client = { clientId, iterationId, requestId, consumerIndex, secret, process };
  tables.addClient({ ...client, firstVersion: null });
  cameInRun(tables, iteration, record);
  if (stream === undefined) return;
  noteReader(tables.readers, readersKey(stream, consumerIndex), record);
}

function noteReader(
  readers: Map<string, StreamReaders>,
  key: string,
  { clientId, restoration }: RecordOf<"client_opened">,
): void {
  const before = readers.get(key)?.restored ?? null;
  const isNew = restoration !== undefined && restoration !== before?.name;
  // At the end, as the newest.
  readers.delete(key);
  readers.set(key, {
    newest: clientId,
    restored: isNew ? { name: restoration, first: clientId } : before,
  });
  trimOldest(readers, READERS_KEPT);
}

/** Under what the readers of a stream are kept, or those that were one consumer of it. */
export function readersKey(stream: string, consumerIndex: number | null): string {
  return `${consumerIndex ?? ""}/${stream}`;
}

export function released(tables: Tables, record: RecordOf<"client_released">): void {
  const client = need(tables.clients.get(record.clientId), record);
  const { clientId, iterationId, consumerIndex, secret } = client;
  tables.removeClient(client);
  const iteration = need(tables.iterations.get(iterationId), record);
  const { rounds, ordered } = iteration;
  const saveEnd = saveEndOf(tables, iteration);
  const told = { iterationId, secret };
  tables.released.set(clientId, saveEnd === undefined ? told : { ...told, saveEnd });
  trimOldest(tables.released, RELEASED_CLIENTS_KEPT);
  if (ordered?.consumers && consumerIndex !== null) leave(ordered, consumerIndex);
  pass(tables, iteration, consumerIndex, iteration.repetition);
  rounds.reached = Math.max(rounds.reached, record.nextRound ?? 0);
}

function saveEndOf(tables: Tables, iteration: Iteration): SaveEnd | undefined {
  const { jobId, saving, error } = iteration;
  if (tables.jobs.get(jobId)?.parameters.save === undefined) return undefined;
  return error !== null || saving?.isWhole === true ? { error } : undefined;
}

function trimOldest<K, V>(map: Map<K, V>, sizeMax: number): void {
  for (const key of map.keys()) {
    if (map.size <= sizeMax) return;
    map.delete(key);
  }
}
