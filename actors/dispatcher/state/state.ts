/** The dispatcher's state: a pure function of its journal, changed only by `apply`. */
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
} from "./entities.ts";
import { NOTHING } from "./keyed_sets.ts";
import type { Mode } from "../modes/mode.ts";
import { modeOf } from "../modes/modes.ts";
import type { JobParameters } from "../protocol.ts";
import { applyRecord } from "./record_changes.ts";
import { readersKey } from "../modes/deterministic/stream_memory.ts";
import type { JournalRecord } from "../journal/records.ts";
import type { RoundIndex } from "../modes/coordinated/round_index.ts";
import { snapshotOf, type StateSnapshot, tablesOf } from "../journal/snapshot.ts";
import { type LastIds, likenessOf, Tables } from "./tables.ts";

export class DispatcherState {
  #tables = new Tables();

  /** The state of a snapshot. @throws {LeatError} As {@linkcode tablesOf}. */
  static restore(snapshot: StateSnapshot): DispatcherState {
    const state = new DispatcherState();
    state.#tables = tablesOf(snapshot);
    return state;
  }

  /**
   * The whole state as plain data. Encode it at once, because it shares entities with the state.
   */
  snapshot(): StateSnapshot {
    return snapshotOf(this.#tables);
  }

  /** Applies a record. @throws {LeatError} As {@linkcode applyRecord}. */
  apply(record: JournalRecord): void {
    applyRecord(this.#tables, record);
  }

  /** Drawn when the journal was created; empty before. */
  get clusterId(): string {
    return this.#tables.clusterId;
  }

  /** How many dispatchers have used this journal. */
  get lives(): number {
    return this.#tables.lives;
  }

  /** The id of the next entity of that kind. */
  nextId(kind: keyof LastIds): number {
    return this.#tables.lastIds[kind] + 1;
  }

  get datasets(): ReadonlyMap<string, Dataset> {
    return this.#tables.datasets;
  }

  /** Ids of the datasets that are to be forgotten once no job uses them. */
  get transientDatasets(): ReadonlySet<string> {
    return this.#tables.transient;
  }

  get jobs(): ReadonlyMap<number, Job> {
    return this.#tables.jobs;
  }

  get iterations(): ReadonlyMap<number, Iteration> {
    return this.#tables.iterations;
  }

  get tasks(): ReadonlyMap<number, Task> {
    return this.#tables.tasks;
  }

  get workers(): ReadonlyMap<string, Worker> {
    return this.#tables.workers;
  }

  get workersAlive(): number {
    return this.#tables.workers.size - this.#tables.lostWorkers;
  }

  get clients(): ReadonlyMap<number, Client> {
    return this.#tables.clients;
  }

  /** Bytes of the parameters of jobs and clients, of this identity and of all. */
  parameterBytesOf(owner: string): { readonly own: number; readonly all: number } {
    const { heldBytes } = this.#tables;
    return { own: heldBytes.bytesOf(owner), all: heldBytes.total };
  }

  /** Bytes of datasets, of this identity and of all. */
  datasetBytesOf(owner: string): { readonly own: number; readonly all: number } {
    const { datasetBytes } = this.#tables;
    return { own: datasetBytes.bytesOf(owner), all: datasetBytes.total };
  }

  /** Bytes of tables of splits, of this identity and of all. */
  splitBytesOf(owner: string): { readonly own: number; readonly all: number } {
    const { splitBytes } = this.#tables;
    return { own: splitBytes.bytesOf(owner), all: splitBytes.total };
  }

  /** The registered datasets with the same content and compression, oldest first. */
  datasetsLike(dataset: Pick<Dataset, "fingerprint" | "compression">): Iterable<Dataset> {
    return this.#tables.datasetsOfLikeness.get(likenessOf(dataset));
  }

  ownerOfDataset(datasetId: string): string | undefined {
    return this.#tables.datasetOwners.get(datasetId);
  }

  jobNamed(name: string): Job | undefined {
    return this.#tables.jobOfName.get(name);
  }

  iterationOf(jobId: number, repetition: number): Iteration | undefined {
    return this.#tables.iterationsOfJob.get(jobId)?.get(repetition);
  }

  /** The job's iterations, in order of creation. */
  iterationsOfJob(jobId: number): Iteration[] {
    return [...this.#tables.iterationsOfJob.get(jobId)?.values() ?? []];
  }

  tasksOfIteration(iterationId: number): ReadonlySet<Task> {
    return this.#tables.membersOfIteration.get(iterationId)?.tasks ?? NOTHING;
  }

  /** How many of an iteration's tasks have not produced everything. */
  tasksToComplete(iterationId: number): number {
    return this.#tables.membersOfIteration.get(iterationId)?.tasksToComplete ?? 0;
  }

  taskAt(iterationId: number, worker: string): Task | undefined {
    return this.#tables.membersOfIteration.get(iterationId)?.taskOfWorker.get(worker);
  }

  /** The workers of a process; empty if it is unknown. */
  workersOfProcess(process: string | null): ReadonlySet<Worker> {
    return this.#tables.workersOfProcess.get(process);
  }

  tasksOfWorker(name: string): ReadonlySet<Task> {
    return this.#tables.tasksOfWorker.get(name);
  }

  clientsOfIteration(iterationId: number): ReadonlySet<Client> {
    return this.#tables.membersOfIteration.get(iterationId)?.clients ?? NOTHING;
  }

  /** The index of an iteration's rounds; undefined if reads are not coordinated. */
  roundIndexOf(iterationId: number): RoundIndex | undefined {
    return this.#tables.roundIndexOf(iterationId);
  }

  modeOf(iteration: Pick<Iteration, "jobId">): Mode {
    return modeOf(this.#tables, iteration);
  }

  /** Running iterations that the worker may serve, oldest first, and some that it may not. */
  iterationsFor(worker: Worker): Iteration[] {
    return this.#tables.serving.iterationsFor(worker).flatMap((iterationId) => {
      const iteration = this.#tables.iterations.get(iterationId);
      return iteration === undefined || iteration.finished ? [] : [iteration];
    });
  }

  /** The workers that may serve a job, and some that may not. Lost workers are included. */
  workersFor(parameters: JobParameters): Iterable<Worker> {
    return this.#tables.serving.workersFor(parameters) ?? this.#tables.workers.values();
  }

  clientOfRequest(requestId: string): Client | undefined {
    return this.#tables.clientOfRequest.get(requestId);
  }

  /** The readers of a stream, with this consumer index if it has several, if still remembered. */
  readersOf(stream: string, consumerIndex: number | null): StreamReaders | undefined {
    return this.#tables.readers.get(readersKey(stream, consumerIndex));
  }

  /** The newest run of a stream, if its readers name runs and it is still remembered. */
  runOf(stream: string): StreamRun | undefined {
    return this.#tables.runs.get(stream);
  }

  releasedClient(clientId: number): ReleasedClient | undefined {
    return this.#tables.released.get(clientId);
  }
}
