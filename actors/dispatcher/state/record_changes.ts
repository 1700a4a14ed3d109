/** How each record changes the state, without random numbers or a clock. */
import { LeatError } from "../../../core/error.ts";
import type { Iteration, Worker } from "./entities.ts";
import { trimOldest } from "./keyed_sets.ts";
import { modeFor, modeOf } from "../modes/modes.ts";
import { listerDied, LISTING, runnerDied, survived } from "./runner_deaths_state.ts";
import { MODE_CHANGES } from "../modes/mode_records.ts";
import type { JournalRecord, RecordOf } from "../journal/records.ts";
import { need, type Tables } from "./tables.ts";

/**
 * This many past incarnations of a worker are remembered, to be refused. The oldest are dropped.
 */
const PAST_LIVES_KEPT = 16;
/** This many lost workers are remembered, for descriptions. Those registered first are dropped. */
const LOST_WORKERS_KEPT = 1_000;
/**
 * This many released clients are remembered, so that they get the outcome. The oldest are dropped.
 */
const RELEASED_CLIENTS_KEPT = 1_000;

type RecordType = JournalRecord["type"];
export type Change<T extends RecordType> = (tables: Tables, record: RecordOf<T>) => void;

export const CHANGES: { readonly [T in RecordType]: Change<T> } = {
  cluster_created: createCluster,
  dispatcher_started: (tables) => void tables.lives++,

  dataset_registered: registerDataset,
  dataset_kept: keepDataset,
  dataset_forgotten: forgetDataset,

  job_created: createJob,
  iteration_created: createIteration,
  iteration_failed: failIteration,
  iteration_finished: finishIteration,
  iteration_collected: collectIteration,

  worker_registered: registerWorker,
  worker_lost: loseWorker,

  client_opened: openClient,
  client_released: releaseClient,

  task_created: createTask,
  task_ready: readyTask,
  task_completed: completeTask,
  task_ended: endTask,
  runner_died: runnerDied,
  lister_died: listerDied,

  splits_listed: listSplits,

  ...MODE_CHANGES,
};

/**
 * Applies a record.
 * @throws {LeatError} `data_loss` for a record that does not follow from those before it,
 *   `unimplemented` for one of an unknown type.
 */
export function applyRecord(tables: Tables, record: JournalRecord): void {
  const change = CHANGES[record.type] as Change<RecordType> | undefined;
  if (change === undefined) {
    throw new LeatError(
      "unimplemented",
      `The journal contains a record of unknown type "${record.type}"; use the version of the ` +
        `dispatcher that wrote it`,
    );
  }
  change(tables, record);
}

function createCluster(tables: Tables, { clusterId }: RecordOf<"cluster_created">): void {
  tables.clusterId = clusterId;
  // Workers and clients of an earlier journal may still run: new ids must differ from theirs.
  tables.lastIds.task = tables.lastIds.client = firstIdOf(clusterId);
}

/** Where the task and client ids of a cluster start: 32 bits of the cluster's id. */
function firstIdOf(clusterId: string): number {
  return Number.parseInt(clusterId.slice(0, 8), 16);
}

function registerDataset(tables: Tables, record: RecordOf<"dataset_registered">): void {
  const { type: _, transient = false, owner, ...dataset } = record;
  if (transient) tables.transient.add(dataset.datasetId);
  tables.addDataset(dataset, owner);
}

function keepDataset({ transient }: Tables, { datasetId }: RecordOf<"dataset_kept">): void {
  transient.delete(datasetId);
}

function forgetDataset(tables: Tables, record: RecordOf<"dataset_forgotten">): void {
  tables.removeDataset(need(tables.datasets.get(record.datasetId), record));
}

function createJob(tables: Tables, record: RecordOf<"job_created">): void {
  const { type: _, workers = null, ...job } = record;
  tables.addJob({ ...job, workers });
}

function createIteration(tables: Tables, record: RecordOf<"iteration_created">): void {
  const { iterationId, jobId, repetition, seed, run = null } = record;
  const { parameters } = need(tables.jobs.get(jobId), record);
  const mode = modeFor(parameters);
  const iteration: Iteration = {
    iterationId,
    jobId,
    repetition,
    seed,
    run,
    anyCompleted: false,
    finished: false,
    splits: null,
    error: null,
    deaths: [],
    ...mode.initialState(record, parameters),
  };
  tables.addIteration(iteration, mode.roundIndexFor(iteration));
  mode.iterationCreated(tables, iteration);
}

function failIteration({ iterations }: Tables, record: RecordOf<"iteration_failed">): void {
  need(iterations.get(record.iterationId), record).error = record.error;
}

function finishIteration(tables: Tables, record: RecordOf<"iteration_finished">): void {
  tables.finishIteration(need(tables.iterations.get(record.iterationId), record));
}

function collectIteration(tables: Tables, record: RecordOf<"iteration_collected">): void {
  tables.removeIteration(need(tables.iterations.get(record.iterationId), record));
}

function registerWorker(tables: Tables, record: RecordOf<"worker_registered">): void {
  const { name, worker: ref, tags, process = null, isPrivate = false, owner = null } = record;
  const fields = { ref, tags, process, isPrivate, owner, alive: true };
  const worker = tables.workers.get(name);
  if (worker === undefined) return tables.addWorker({ name, ...fields, pastLives: [] });
  if (worker.ref.incarnation !== ref.incarnation) endLife(worker);
  tables.changeWorker(worker, fields);
}

/** Remembers that the worker's incarnation must not come back. */
function endLife(worker: Worker): void {
  const { pastLives, ref: { incarnation } } = worker;
  if (pastLives.includes(incarnation)) return;
  worker.pastLives = [...pastLives, incarnation].slice(-PAST_LIVES_KEPT);
}

function loseWorker(tables: Tables, record: RecordOf<"worker_lost">): void {
  const lost = need(tables.workers.get(record.name), record);
  if (record.left === true) endLife(lost);
  tables.loseWorker(lost);
  if (tables.lostWorkers <= LOST_WORKERS_KEPT) return;
  for (const worker of tables.workers.values()) {
    if (worker.alive) continue;
    tables.removeWorker(worker);
    if (tables.lostWorkers <= LOST_WORKERS_KEPT) return;
  }
}

function openClient(tables: Tables, record: RecordOf<"client_opened">): void {
  const { clientId, iterationId, requestId, consumerIndex } = record;
  const { secret = null, process = null, readBy = null } = record;
  const iteration = need(tables.iterations.get(iterationId), record);
  const client = { clientId, iterationId, requestId, consumerIndex, secret, process, readBy };
  tables.addClient({ ...client, firstVersion: null });
  modeOf(tables, iteration).clientOpened(tables, iteration, record);
}

function releaseClient(tables: Tables, record: RecordOf<"client_released">): void {
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

function createTask(tables: Tables, record: RecordOf<"task_created">): void {
  const { taskId, iterationId, worker, seed } = record;
  const given = { taskId, iterationId, worker, seed };
  tables.addTask({ ...given, source: null, completed: false, runnerDeaths: 0, requests: [] });
}

function readyTask(tables: Tables, record: RecordOf<"task_ready">): void {
  tables.readyTask(need(tables.tasks.get(record.taskId), record), record.source);
}

function completeTask(tables: Tables, record: RecordOf<"task_completed">): void {
  const task = need(tables.tasks.get(record.taskId), record);
  tables.completeTask(task);
  const iteration = need(tables.iterations.get(task.iterationId), record);
  iteration.anyCompleted = true;
  const { workers } = need(tables.jobs.get(iteration.jobId), record);
  modeOf(tables, iteration).taskCompleted(iteration, task, workers);
}

function endTask(tables: Tables, record: RecordOf<"task_ended">): void {
  const task = need(tables.tasks.get(record.taskId), record);
  const iteration = tables.iterations.get(task.iterationId);
  if (iteration !== undefined) modeOf(tables, iteration).taskEnded(iteration, task);
  tables.removeTask(task);
}

function listSplits(tables: Tables, record: RecordOf<"splits_listed">): void {
  const { iterationId, bounds, digest } = record;
  const iteration = need(tables.iterations.get(iterationId), record);
  const cursors = bounds.map(() => ({ repetition: 0, next: 0 }));
  tables.listSplits(iteration, { bounds, digest, cursors });
  survived(iteration, (place) => place === LISTING);
}
