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

export function opened(tables: Tables, record: RecordOf<"client_opened">): void {
  const { type: _, process = null, startAt = 0, behind, ...client } = record;
  const { ordered } = need(tables.iterations.get(client.iterationId), record);
  if (ordered?.consumers && client.consumerIndex !== null) {
    join(ordered, client.consumerIndex, { startAt, behind });
  }
  tables.addClient({ ...client, process, firstVersion: null });
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
