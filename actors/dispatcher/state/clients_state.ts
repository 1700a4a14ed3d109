/** How records change the clients. */
import { trimOldest } from "./keyed_sets.ts";
import { modeOf } from "../modes/modes.ts";
import type { RecordOf } from "../journal/records.ts";
import { need, type Tables } from "./tables.ts";

/** Most released clients that are remembered, to be told their outcome. The oldest are dropped. */
const RELEASED_CLIENTS_KEPT = 1_000;

export function opened(tables: Tables, record: RecordOf<"client_opened">): void {
  const { clientId, iterationId, requestId, consumerIndex, secret = null, process = null } = record;
  const iteration = need(tables.iterations.get(iterationId), record);
  const client = { clientId, iterationId, requestId, consumerIndex, secret, process };
  tables.addClient({ ...client, firstVersion: null });
  modeOf(tables, iteration).clientOpened(tables, iteration, record);
}

export function released(tables: Tables, record: RecordOf<"client_released">): void {
  const client = need(tables.clients.get(record.clientId), record);
  const { clientId, iterationId, secret } = client;
  tables.removeClient(client);
  const iteration = need(tables.iterations.get(iterationId), record);
  const mode = modeOf(tables, iteration);
  const saveEnd = mode.isOver(iteration) ? { saveEnd: { error: iteration.error } } : {};
  tables.released.set(clientId, { iterationId, secret, ...saveEnd });
  trimOldest(tables.released, RELEASED_CLIENTS_KEPT);
  mode.clientReleased(tables, iteration, client, record);
}
