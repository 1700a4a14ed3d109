/** The entities of the state by id, with indices that additions and removals keep up to date. */
import { LeatError } from "../../../core/error.ts";
import {
  type Client,
  type Dataset,
  isServing,
  type Iteration,
  type Job,
  type ReleasedClient,
  type Splits,
  type StreamReaders,
  type StreamRun,
  type Task,
  type Worker,
} from "./entities.ts";
import {
  bytesOfClient,
  bytesOfDataset,
  bytesOfIteration,
  bytesOfJob,
  bytesOfSplits,
  HeldBytes,
} from "../held_bytes.ts";
import { KeyedSets } from "./keyed_sets.ts";
import type { JobParameters } from "../protocol.ts";
import type { JournalRecord } from "../journal/records.ts";
import { ownerOfStream } from "../modes/deterministic/stream_memory.ts";
import { Remembered } from "./remembered.ts";
import type { RoundIndex } from "../modes/coordinated/round_index.ts";
import { ServingIndex } from "./serving_index.ts";

/** The form of the ids that the dispatcher counts: adding such an id moves the counter up to it. */
const NUMBERED = /^[1-9][0-9]{0,14}$/;

export interface LastIds {
  dataset: number;
  job: number;
  iteration: number;
  task: number;
  client: number;
}

export class Tables {
  clusterId = "";
  lives = 0;
  readonly lastIds: LastIds = { dataset: 0, job: 0, iteration: 0, task: 0, client: 0 };
  readonly datasets: Map<string, Dataset> = new Map();
  readonly transient: Set<string> = new Set();
  readonly datasetOwners: Map<string, string> = new Map();
  readonly jobs: Map<number, Job> = new Map();
  readonly iterations: Map<number, Iteration> = new Map();
  readonly tasks: Map<number, Task> = new Map();
  readonly workers: Map<string, Worker> = new Map();
  readonly clients: Map<number, Client> = new Map();
  /** Oldest first. */
  readonly released: Map<number, ReleasedClient> = new Map();
  /** The readers of streams, kept even without jobs. */
  readonly readers: Remembered<StreamReaders> = new Remembered(ownerOfStream);

  /** The newest run of each stream, kept even without jobs. */
  readonly runs: Remembered<StreamRun> = new Remembered(ownerOfStream);

  // Indices, derived from the above.
  /** Datasets with equal content and compression, oldest first. */
  readonly datasetsOfLikeness: KeyedSets<string, Dataset> = new KeyedSets();
  readonly jobOfName: Map<string, Job> = new Map();
  /** By repetition. */
  readonly iterationsOfJob: Map<number, Map<number, Iteration>> = new Map();
  readonly membersOfIteration: Map<number, IterationMembers> = new Map();
  readonly tasksOfWorker: KeyedSets<string, Task> = new KeyedSets();
  /** Workers without a known process have no entry. */
  readonly workersOfProcess: KeyedSets<string | null, Worker> = new KeyedSets();
  readonly clientOfRequest: Map<string, Client> = new Map();
  readonly serving: ServingIndex = new ServingIndex();
  /** The bytes of the parameters of jobs and clients. */
  readonly heldBytes: HeldBytes = new HeldBytes();
  readonly datasetBytes: HeldBytes = new HeldBytes();
  readonly splitBytes: HeldBytes = new HeldBytes();
  lostWorkers = 0;

  addDataset(dataset: Dataset, owner: string): void {
    const { datasetId } = dataset;
    if (NUMBERED.test(datasetId)) {
      this.lastIds.dataset = Math.max(this.lastIds.dataset, Number(datasetId));
    }
    this.datasets.set(datasetId, dataset);
    this.datasetOwners.set(datasetId, owner);
    this.datasetBytes.add(owner, dataset, bytesOfDataset(dataset));
    this.datasetsOfLikeness.add(likenessOf(dataset), dataset);
  }

  removeDataset(dataset: Dataset): void {
    this.datasets.delete(dataset.datasetId);
    this.datasetBytes.remove(dataset);
    this.transient.delete(dataset.datasetId);
    this.datasetOwners.delete(dataset.datasetId);
    this.datasetsOfLikeness.delete(likenessOf(dataset), dataset);
  }

  addJob(job: Job): void {
    this.lastIds.job = Math.max(this.lastIds.job, job.jobId);
    this.jobs.set(job.jobId, job);
    this.iterationsOfJob.set(job.jobId, new Map());
    this.heldBytes.add(job.owner, job, bytesOfJob(job));
    if (job.name !== null) this.jobOfName.set(job.name, job);
  }

  /** @param rounds The index of tasks and consumers, if its clients read in rounds. */
  addIteration(iteration: Iteration, rounds: RoundIndex | undefined): void {
    const { iterationId, jobId, repetition } = iteration;
    this.lastIds.iteration = Math.max(this.lastIds.iteration, iterationId);
    this.iterations.set(iterationId, iteration);
    this.countIteration(iteration);
    this.#countSplits(iteration);
    this.iterationsOfJob.get(jobId)?.set(repetition, iteration);
    this.membersOfIteration.set(iterationId, new IterationMembers(rounds));
    this.serving.addIteration(iteration, this.#parametersOf(iteration));
  }

  /** Counts the bytes of the iteration for its owner. Call it again after a change. */
  countIteration(iteration: Iteration): void {
    const owner = this.jobs.get(iteration.jobId)?.owner;
    this.heldBytes.remove(iteration);
    if (owner !== undefined) this.heldBytes.add(owner, iteration, bytesOfIteration(iteration));
  }

  listSplits(iteration: Iteration, splits: Splits): void {
    iteration.splits = splits;
    this.#countSplits(iteration);
  }

  finishIteration(iteration: Iteration): void {
    iteration.finished = true;
    this.serving.removeIteration(iteration, this.#parametersOf(iteration));
  }

  /** Also removes the iteration's tasks, and its job if that has no other iteration. */
  removeIteration(iteration: Iteration): void {
    const { iterationId, jobId, repetition } = iteration;
    this.heldBytes.remove(iteration);
    this.splitBytes.remove(iteration);
    this.serving.removeIteration(iteration, this.#parametersOf(iteration));
    for (const task of this.membersOfIteration.get(iterationId)?.tasks ?? []) this.removeTask(task);
    this.iterations.delete(iterationId);
    this.membersOfIteration.delete(iterationId);
    const siblings = this.iterationsOfJob.get(jobId);
    siblings?.delete(repetition);
    if (siblings?.size === 0) this.#removeJob(jobId);
  }

  addTask(task: Task): void {
    this.lastIds.task = Math.max(this.lastIds.task, task.taskId);
    this.tasks.set(task.taskId, task);
    this.tasksOfWorker.add(task.worker, task);
    this.membersOfIteration.get(task.iterationId)?.addTask(task);
  }

  /** Clients can read the task at the source. */
  readyTask(task: Task, source: NonNullable<Task["source"]>): void {
    if (task.source === null) this.roundIndexOf(task.iterationId)?.serves(task.taskId);
    task.source = source;
  }

  completeTask(task: Task): void {
    this.membersOfIteration.get(task.iterationId)?.completeTask(task);
  }

  removeTask(task: Task): void {
    this.tasks.delete(task.taskId);
    this.tasksOfWorker.delete(task.worker, task);
    this.membersOfIteration.get(task.iterationId)?.removeTask(task);
  }

  addWorker(worker: Worker): void {
    this.workers.set(worker.name, worker);
    this.#listWorker(worker);
  }

  /** Changes a worker. It keeps its position in `workers`, but moves to the end in the indices. */
  changeWorker(worker: Worker, fields: Partial<Worker>): void {
    this.#unlistWorker(worker);
    this.#listWorker(Object.assign(worker, fields));
  }

  loseWorker(worker: Worker): void {
    if (worker.alive) this.lostWorkers++;
    worker.alive = false;
  }

  removeWorker(worker: Worker): void {
    this.workers.delete(worker.name);
    this.#unlistWorker(worker);
  }

  addClient(client: Client): void {
    this.lastIds.client = Math.max(this.lastIds.client, client.clientId);
    this.clients.set(client.clientId, client);
    this.clientOfRequest.set(client.requestId, client);
    const iteration = this.iterations.get(client.iterationId);
    const job = iteration === undefined ? undefined : this.jobs.get(iteration.jobId);
    if (job !== undefined) this.heldBytes.add(job.owner, client, bytesOfClient(client));
    this.membersOfIteration.get(client.iterationId)?.addClient(client);
    this.serving.addClient(client);
  }

  removeClient(client: Client): void {
    this.clients.delete(client.clientId);
    this.clientOfRequest.delete(client.requestId);
    this.heldBytes.remove(client);
    this.membersOfIteration.get(client.iterationId)?.removeClient(client);
    this.serving.removeClient(client);
  }

  roundIndexOf(iterationId: number): RoundIndex | undefined {
    return this.membersOfIteration.get(iterationId)?.rounds;
  }

  #countSplits(iteration: Iteration): void {
    const owner = this.jobs.get(iteration.jobId)?.owner;
    if (owner === undefined || iteration.splits === null) return;
    this.splitBytes.remove(iteration);
    this.splitBytes.add(owner, iteration, bytesOfSplits(iteration.splits.bounds));
  }

  #parametersOf({ jobId }: Iteration): JobParameters {
    return this.jobs.get(jobId)!.parameters;
  }

  #removeJob(jobId: number): void {
    const job = this.jobs.get(jobId);
    const name = job?.name ?? null;
    if (job !== undefined) this.heldBytes.remove(job);
    this.jobs.delete(jobId);
    this.iterationsOfJob.delete(jobId);
    if (name !== null) this.jobOfName.delete(name);
  }

  #listWorker(worker: Worker): void {
    if (!worker.alive) this.lostWorkers++;
    if (worker.process !== null) this.workersOfProcess.add(worker.process, worker);
    this.serving.addWorker(worker);
  }

  #unlistWorker(worker: Worker): void {
    if (!worker.alive) this.lostWorkers--;
    this.workersOfProcess.delete(worker.process, worker);
    this.serving.removeWorker(worker);
  }
}

/** Equal for datasets of equal content and compression. */
export function likenessOf(
  { fingerprint, compression }: Pick<Dataset, "fingerprint" | "compression">,
): string {
  return `${fingerprint} ${compression ?? "auto"}`;
}

/** The entity of a record. @throws {LeatError} `data_loss` if no earlier record created it. */
export function need<T>(entity: T | undefined, record: JournalRecord): T {
  if (entity !== undefined) return entity;
  throw new LeatError(
    "data_loss",
    `The journal is incomplete: a record "${record.type}" refers to something that no earlier record created`,
    { details: { record: record.type } },
  );
}

/** The tasks and clients of one iteration. */
class IterationMembers {
  readonly tasks: Set<Task> = new Set();
  readonly taskOfWorker: Map<string, Task> = new Map();
  /** Number of tasks that have not produced everything. */
  tasksToComplete = 0;
  readonly clients: Set<Client> = new Set();
  /** Undefined if reads are not coordinated. */
  readonly rounds: RoundIndex | undefined;

  constructor(rounds: RoundIndex | undefined) {
    this.rounds = rounds;
  }

  addTask(task: Task): void {
    this.tasks.add(task);
    this.taskOfWorker.set(task.worker, task);
    if (!task.completed) this.tasksToComplete++;
    if (isServing(task)) this.rounds?.serves(task.taskId);
  }

  completeTask(task: Task): void {
    if (!task.completed) this.tasksToComplete--;
    task.completed = true;
  }

  removeTask(task: Task): void {
    this.tasks.delete(task);
    this.taskOfWorker.delete(task.worker);
    if (!task.completed) this.tasksToComplete--;
    if (isServing(task)) this.rounds?.servesNoMore(task.taskId);
  }

  addClient(client: Client): void {
    this.clients.add(client);
    this.rounds?.joins(client);
  }

  removeClient(client: Client): void {
    this.clients.delete(client);
    this.rounds?.leaves(client);
  }
}
