/** How records change the workers. */
import type { RecordOf } from "../journal/records.ts";
import { need, type Tables } from "./tables.ts";

/** Most past lives of a worker's name remembered, to be refused. The oldest are dropped. */
const PAST_LIVES_KEPT = 16;
/** Most lost workers that are remembered, for people. The first registered are dropped. */
const LOST_WORKERS_KEPT = 1_000;

export function registered(tables: Tables, record: RecordOf<"worker_registered">): void {
  const { name, worker: ref, tags, process = null, isPrivate = false, owner = null } = record;
  const fields = { ref, tags, process, isPrivate, owner, alive: true };
  const worker = tables.workers.get(name);
  if (worker === undefined) return tables.addWorker({ name, ...fields, pastLives: [] });
  if (worker.ref.incarnation !== ref.incarnation) {
    worker.pastLives = [...worker.pastLives, worker.ref.incarnation].slice(-PAST_LIVES_KEPT);
  }
  tables.changeWorker(worker, fields);
}

export function lost(tables: Tables, record: RecordOf<"worker_lost">): void {
  tables.loseWorker(need(tables.workers.get(record.name), record));
  if (tables.lostWorkers <= LOST_WORKERS_KEPT) return;
  for (const worker of tables.workers.values()) {
    if (worker.alive) continue;
    tables.removeWorker(worker);
    if (tables.lostWorkers <= LOST_WORKERS_KEPT) return;
  }
}
