/**
 * The dispatcher's state: a pure function of its journal. `apply` draws nothing and reads no clock;
 * what it needs is in the record.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { decodeMessage, encodeMessage } from "../../transport/codec.ts";
import { copyBody } from "../runtime/body.ts";
import {
  type Client,
  type Dataset,
  isServing,
  type Iteration,
  type Job,
  noRounds,
  type Ordered,
  type Rounds,
  type Task,
  type Worker,
} from "./entities.ts";
import { assign, join, leave, lose, orderedFrom, receive, receiveFor } from "./ordered_state.ts";
import type { JobParameters } from "./protocol.ts";
import type { JournalRecord } from "./records.ts";
import { changedTasks } from "./protocol_schedules.ts";
import { RoundIndex } from "./round_index.ts";
import {
  assignEntry,
  assignRun,
  loseWork,
  noteEntry,
  noteRun,
  savingFrom,
} from "./saving_state.ts";
import { ServingIndex } from "./serving_index.ts";
import { noteRequest } from "./split_requests.ts";
import { splitCount } from "./split_table.ts";

/** How many past lives of a worker's name are remembered, to be refused. Beyond it the oldest is forgotten. */
const PAST_LIVES_KEPT = 16;
/** How many lost workers are remembered, for people to see. Beyond it the first registered is forgotten. */
const LOST_WORKERS_KEPT = 1_000;
/** How many released clients are remembered, to be told what became of them. Beyond it the oldest is forgotten. */
const RELEASED_CLIENTS_KEPT = 1_000;

/** What {@linkcode DispatcherState.snapshot} holds: plain data. */
export interface StateSnapshot {
  readonly format: typeof SNAPSHOT_FORMAT;
  readonly clusterId: string;
  readonly lives: number;
  readonly lastIds: {
    readonly dataset?: number;
    readonly job: number;
    readonly iteration: number;
    readonly task: number;
    readonly client: number;
  };
  readonly datasets: readonly Dataset[];
  readonly transient?: readonly string[];
  readonly jobs: readonly Job[];
  readonly iterations: readonly Iteration[];
  readonly tasks: readonly Task[];
  readonly workers: readonly Worker[];
  readonly clients: readonly Client[];
  readonly released: readonly { readonly clientId: number; readonly iterationId: number }[];
}

const SNAPSHOT_FORMAT = 1;
/** Ids that could have been given, as far as they can be counted; whoever chooses one skips those before it. */
const NUMBERED = /^[1-9][0-9]{0,14}$/;

/** See the module. Readers see the entities as they are; only `apply` changes them. */
export class DispatcherState {
  #clusterId = "";
  #lives = 0;
  readonly #lastIds = { dataset: 0, job: 0, iteration: 0, task: 0, client: 0 };
  readonly #datasets = new Map<string, Dataset>();
  readonly #transient = new Set<string>();
  readonly #jobs = new Map<number, Job>();
  readonly #iterations = new Map<number, Iteration>();
  readonly #tasks = new Map<number, Task>();
  readonly #workers = new Map<string, Worker>();
  readonly #clients = new Map<number, Client>();
  /** Released clients and the iterations they were in, oldest first. */
  readonly #released = new Map<number, number>();

  // Indices, which follow from the above.
  /** Of equal datasets, those that were registered first come first. */
  readonly #datasetsOfLikeness = new Map<string, Set<Dataset>>();
  readonly #jobOfName = new Map<string, number>();
  readonly #iterationsOfJob = new Map<number, Map<number, number>>();
  readonly #tasksOfIteration = new Map<number, IterationTasks>();
  readonly #tasksOfWorker = new Map<string, Set<Task>>();
  readonly #workersOfProcess = new Map<string, Set<Worker>>();
  readonly #clientsOfIteration = new Map<number, Set<Client>>();
  readonly #clientOfRequest = new Map<string, number>();
  /** Of the iterations whose reads are coordinated. */
  readonly #roundIndices = new Map<number, RoundIndex>();
  readonly #serving = new ServingIndex();
  #lostWorkers = 0;

  /** The state that a snapshot holds. @throws {LeatError} `unimplemented` for a snapshot of a later format. */
  static restore(snapshot: StateSnapshot): DispatcherState {
    if (snapshot.format !== SNAPSHOT_FORMAT) {
      throw new LeatError(
        "unimplemented",
        `The journal holds a snapshot of format ${snapshot.format}, and this dispatcher reads format ` +
          `${SNAPSHOT_FORMAT}; use the version that wrote it`,
      );
    }
    const state = new DispatcherState();
    state.#clusterId = snapshot.clusterId;
    state.#lives = snapshot.lives;
    Object.assign(state.#lastIds, snapshot.lastIds);
    // A deep copy: the state changes its entities.
    const copy = copyBody(snapshot) as StateSnapshot;
    copy.datasets.forEach((dataset) => state.#addDataset(dataset));
    copy.transient?.forEach((datasetId) => state.#transient.add(datasetId));
    // Older snapshots know of no order and of no fixed workers.
    copy.jobs.forEach((job) => state.#addJob({ ...job, workers: job.workers ?? null }));
    copy.iterations.forEach((iteration) => {
      const { shardsDone = [], saving = null } = iteration;
      const ordered = iteration.ordered
        ? { ...iteration.ordered, consumers: iteration.ordered.consumers ?? null }
        : null;
      const { rounds } = iteration;
      // Who has accepted a schedule without saying what it holds accepts it again.
      const isOld = rounds.proposal !== null && (rounds.proposal.held as unknown) === undefined;
      const proposal = isOld ? { ...rounds.proposal!, acceptedBy: [], held: [] } : rounds.proposal;
      state.#addIteration({
        ...iteration,
        ordered,
        shardsDone,
        saving,
        rounds: { ...rounds, proposal, ended: rounds.ended ?? null },
      });
    });
    // Nor of processes.
    copy.workers.forEach((worker) => {
      const { process = null, isPrivate = false } = worker;
      state.#addWorker({ ...worker, process, isPrivate });
      if (!worker.alive) state.#lostWorkers++;
    });
    copy.tasks.forEach((task) => state.#addTask(task));
    copy.clients.forEach((client) => {
      state.#addClient({ ...client, process: client.process ?? null });
    });
    copy.released.forEach((entry) => state.#released.set(entry.clientId, entry.iterationId));
    return state;
  }

  /** Everything, as plain data that shares nothing with the state. */
  snapshot(): StateSnapshot {
    return copyBody({
      format: SNAPSHOT_FORMAT,
      clusterId: this.#clusterId,
      lives: this.#lives,
      lastIds: this.#lastIds,
      datasets: [...this.#datasets.values()],
      transient: [...this.#transient],
      jobs: [...this.#jobs.values()],
      iterations: [...this.#iterations.values()],
      tasks: [...this.#tasks.values()],
      workers: [...this.#workers.values()],
      clients: [...this.#clients.values()],
      released: [...this.#released].map(([clientId, iterationId]) => ({ clientId, iterationId })),
    }) as StateSnapshot;
  }

  /** Drawn when the journal began; empty before. */
  get clusterId(): string {
    return this.#clusterId;
  }

  /** How many dispatchers have worked on this journal. */
  get lives(): number {
    return this.#lives;
  }

  get nextDatasetId(): number {
    return this.#lastIds.dataset + 1;
  }

  get nextJobId(): number {
    return this.#lastIds.job + 1;
  }

  get nextIterationId(): number {
    return this.#lastIds.iteration + 1;
  }

  get nextTaskId(): number {
    return this.#lastIds.task + 1;
  }

  get nextClientId(): number {
    return this.#lastIds.client + 1;
  }

  get datasets(): ReadonlyMap<string, Dataset> {
    return this.#datasets;
  }

  /** The ids of the datasets that are forgotten once no job uses them. */
  get transientDatasets(): ReadonlySet<string> {
    return this.#transient;
  }

  get jobs(): ReadonlyMap<number, Job> {
    return this.#jobs;
  }

  get iterations(): ReadonlyMap<number, Iteration> {
    return this.#iterations;
  }

  get tasks(): ReadonlyMap<number, Task> {
    return this.#tasks;
  }

  get workers(): ReadonlyMap<string, Worker> {
    return this.#workers;
  }

  get workersAlive(): number {
    return this.#workers.size - this.#lostWorkers;
  }

  get clients(): ReadonlyMap<number, Client> {
    return this.#clients;
  }

  /** The first that was registered of the datasets that are equal and compressed alike. */
  datasetLike(dataset: Pick<Dataset, "fingerprint" | "compression">): Dataset | undefined {
    const [first] = this.#datasetsOfLikeness.get(likenessOf(dataset)) ?? [];
    return first;
  }

  jobNamed(name: string): Job | undefined {
    return this.#jobs.get(this.#jobOfName.get(name) ?? -1);
  }

  iterationOf(jobId: number, repetition: number): Iteration | undefined {
    return this.#iterations.get(this.#iterationsOfJob.get(jobId)?.get(repetition) ?? -1);
  }

  /** The job's iterations, in the order of their creation. */
  iterationsOfJob(jobId: number): Iteration[] {
    const ids = this.#iterationsOfJob.get(jobId)?.values() ?? [];
    return [...ids].map((id) => this.#iterations.get(id)!);
  }

  tasksOfIteration(iterationId: number): ReadonlySet<Task> {
    return this.#tasksOfIteration.get(iterationId)?.all ?? NOTHING;
  }

  /** How many of an iteration's tasks have not produced everything. */
  tasksToComplete(iterationId: number): number {
    return this.#tasksOfIteration.get(iterationId)?.toComplete ?? 0;
  }

  /** A worker's task of an iteration. */
  taskAt(iterationId: number, worker: string): Task | undefined {
    return this.#tasksOfIteration.get(iterationId)?.byWorker.get(worker);
  }

  /** The workers of a process; of none, where it has not said which it is. */
  workersOfProcess(process: string | null): ReadonlySet<Worker> {
    return process === null ? NOTHING : this.#workersOfProcess.get(process) ?? NOTHING;
  }

  tasksOfWorker(name: string): ReadonlySet<Task> {
    return this.#tasksOfWorker.get(name) ?? NOTHING;
  }

  clientsOfIteration(iterationId: number): ReadonlySet<Client> {
    return this.#clientsOfIteration.get(iterationId) ?? NOTHING;
  }

  /** What is found at once of the rounds of an iteration; undefined where reads are not coordinated. */
  roundIndexOf(iterationId: number): RoundIndex | undefined {
    return this.#roundIndices.get(iterationId);
  }

  /** Of the iterations that go on those that the worker may have to serve, oldest first; others it has not. */
  iterationsFor(worker: Worker): Iteration[] {
    return this.#serving.iterationsFor(worker).flatMap((iterationId) => {
      const iteration = this.#iterations.get(iterationId);
      return iteration === undefined || iteration.finished ? [] : [iteration];
    });
  }

  /** The workers that may have to serve a job, those that are lost among them; others have not. */
  workersFor(parameters: JobParameters): Iterable<Worker> {
    return this.#serving.workersFor(parameters) ?? this.#workers.values();
  }

  clientOfRequest(requestId: string): Client | undefined {
    return this.#clients.get(this.#clientOfRequest.get(requestId) ?? -1);
  }

  /** The iteration that a released client was in, if that is still remembered. */
  iterationOfReleased(clientId: number): number | undefined {
    return this.#released.get(clientId);
  }

  /**
   * Makes the change that a record tells of.
   *
   * @throws {LeatError} `data_loss` for a record that does not follow from those before it,
   * `unimplemented` for one of an unknown kind.
   */
  apply(record: JournalRecord): void {
    switch (record.type) {
      case "cluster_created":
        this.#clusterId = record.clusterId;
        // Workers and clients of an earlier journal may still be there: their ids mean nothing here.
        this.#lastIds.task = this.#lastIds.client = firstIdOf(record.clusterId);
        return;
      case "dispatcher_started":
        this.#lives++;
        return;
      case "dataset_registered": {
        const { type: _, transient = false, ...dataset } = record;
        if (transient) this.#transient.add(dataset.datasetId);
        return this.#addDataset(dataset);
      }
      case "dataset_kept":
        this.#transient.delete(record.datasetId);
        return;
      case "dataset_forgotten":
        return this.#removeDataset(need(this.#datasets.get(record.datasetId), record));
      case "job_created": {
        const { type: _, workers = null, ...job } = record;
        return this.#addJob({ ...job, workers });
      }
      case "worker_registered":
      case "worker_lost":
        return this.#applyToWorker(record);
      case "client_opened":
      case "client_released":
        return this.#applyToClient(record);
      case "task_created":
      case "task_ready":
      case "task_completed":
      case "task_ended":
      case "split_assigned":
      case "sequence_assigned":
        return this.#applyToTask(record);
      case "save_begun":
      case "save_run_assigned":
      case "save_run_written":
      case "save_entry_assigned":
      case "save_entry_written":
        return this.#applyToSave(record);
      default:
        return this.#applyToIteration(record);
    }
  }

  #applyToWorker(record: RecordOf<"worker_registered" | "worker_lost">): void {
    const worker = this.#workers.get(record.name);
    if (record.type === "worker_lost") {
      const lost = need(worker, record);
      if (lost.alive) this.#lostWorkers++;
      lost.alive = false;
      return this.#forgetLostWorkers();
    }
    const { name, worker: ref, tags, process = null, isPrivate = false } = record;
    if (worker === undefined) {
      const pastLives: string[] = [];
      return this.#addWorker({ name, ref, tags, process, isPrivate, alive: true, pastLives });
    }
    if (worker.ref.incarnation !== ref.incarnation) {
      worker.pastLives = [...worker.pastLives, worker.ref.incarnation].slice(-PAST_LIVES_KEPT);
    }
    if (!worker.alive) this.#lostWorkers--;
    this.#unlistWorker(worker);
    this.#addWorker(Object.assign(worker, { ref, tags, process, isPrivate, alive: true }));
  }

  #applyToClient(record: RecordOf<"client_opened" | "client_released">): void {
    if (record.type === "client_opened") {
      const { type: _, process = null, startAt = 0, behind, ...client } = record;
      const { ordered } = need(this.#iterations.get(client.iterationId), record);
      if (ordered?.consumers && client.consumerIndex !== null) {
        join(ordered, client.consumerIndex, { startAt, behind });
      }
      return this.#addClient({ ...client, process, firstVersion: null });
    }
    const client = need(this.#clients.get(record.clientId), record);
    this.#clients.delete(client.clientId);
    this.#serving.removeClient(client);
    this.#clientOfRequest.delete(client.requestId);
    this.#clientsOfIteration.get(client.iterationId)?.delete(client);
    this.#roundIndices.get(client.iterationId)?.leaves(client);
    this.#released.set(client.clientId, client.iterationId);
    trimOldest(this.#released, RELEASED_CLIENTS_KEPT);
    const { rounds, ordered } = need(this.#iterations.get(client.iterationId), record);
    if (ordered?.consumers && client.consumerIndex !== null) leave(ordered, client.consumerIndex);
    rounds.reached = Math.max(rounds.reached, record.nextRound ?? 0);
  }

  #applyToTask(
    record: RecordOf<
      | "task_created"
      | "task_ready"
      | "task_completed"
      | "task_ended"
      | "split_assigned"
      | "sequence_assigned"
    >,
  ): void {
    if (record.type === "task_created") {
      const { taskId, iterationId, worker, seed } = record;
      const task = { taskId, iterationId, worker, seed, source: null, completed: false };
      return this.#addTask({ ...task, requests: [] });
    }
    const task = need(this.#tasks.get(record.taskId), record);
    switch (record.type) {
      case "task_ready":
        if (task.source === null) this.#roundIndices.get(task.iterationId)?.serves(task.taskId);
        task.source = record.source;
        return;
      case "task_completed":
        this.#tasksOfIteration.get(task.iterationId)?.complete(task);
        return this.#noteCompleted(need(this.#iterations.get(task.iterationId), record), task);
      case "task_ended": {
        const { ordered, saving } = this.#iterations.get(task.iterationId) ?? {};
        if (ordered) lose(ordered, task.taskId);
        if (saving) loseWork(saving, task.taskId);
        return this.#removeTask(task);
      }
      case "split_assigned":
        return this.#assignSplit(task, record);
      case "sequence_assigned": {
        const { ordered } = need(this.#iterations.get(task.iterationId), record);
        assign(need(ordered ?? undefined, record), record.sequence, record.taskId);
        return noteRequest(task, record.series, record.number, record.sequence);
      }
    }
  }

  #applyToSave(record: RecordOf<SaveRecordType>): void {
    if (record.type === "save_begun") {
      const { type: _, iterationId, ...start } = record;
      need(this.#iterations.get(iterationId), record).saving = savingFrom(start);
      return;
    }
    const { taskId } = record;
    const { iterationId } = need(this.#tasks.get(taskId), record);
    const { saving: found, splits } = need(this.#iterations.get(iterationId), record);
    const saving = need(found ?? undefined, record);
    switch (record.type) {
      case "save_run_assigned":
        return assignRun(saving, taskId, record);
      case "save_run_written":
        return noteRun(saving, taskId, record);
      case "save_entry_assigned":
        return assignEntry(saving, taskId, record.upTo);
      case "save_entry_written":
        return noteEntry(saving, record, splitCount(need(splits ?? undefined, record).bounds, 0));
    }
  }

  #receive(ordered: Ordered, record: RecordOf<"sequences_received">): void {
    const { consumerIndex, mark, done } = record;
    if (consumerIndex === undefined) receive(ordered, mark, done);
    else receiveFor(ordered, consumerIndex, mark, done);
  }

  #noteCompleted(iteration: Iteration, { taskId, worker }: Task): void {
    iteration.anyCompleted = true;
    if (iteration.ordered !== null) lose(iteration.ordered, taskId);
    const index = this.#jobs.get(iteration.jobId)?.workers?.indexOf(worker) ?? -1;
    if (index >= 0 && !iteration.shardsDone.includes(index)) iteration.shardsDone.push(index);
  }

  #applyToIteration(
    record: RecordOf<
      | "iteration_created"
      | "iteration_finished"
      | "iteration_collected"
      | "splits_listed"
      | "splits_failed"
      | "sequences_received"
      | ScheduleRecord["type"]
    >,
  ): void {
    if (record.type === "iteration_created") {
      const { type: _, startAt, behind, ...created } = record;
      const fresh = {
        anyCompleted: false,
        shardsDone: [],
        finished: false,
        splits: null,
        splitsError: null,
        saving: null,
      };
      const { numConsumers } = need(this.#jobs.get(record.jobId), record).parameters;
      const ordered = startAt === undefined ? null : orderedFrom({ startAt, behind }, numConsumers);
      return this.#addIteration({ ...created, ...fresh, rounds: noRounds(), ordered });
    }
    const iteration = need(this.#iterations.get(record.iterationId), record);
    switch (record.type) {
      case "iteration_finished":
        iteration.finished = true;
        this.#serving.removeIteration(iteration, this.#parametersOf(iteration));
        return;
      case "iteration_collected":
        return this.#removeIteration(iteration);
      case "splits_listed": {
        const { bounds, digest } = record;
        const cursors = bounds.map(() => ({ repetition: 0, next: 0 }));
        iteration.splits = { bounds, digest, cursors };
        return;
      }
      case "splits_failed":
        iteration.splitsError = record.error;
        return;
      case "sequences_received":
        return this.#receive(need(iteration.ordered ?? undefined, record), record);
      case "schedule_proposed":
      case "schedule_changed":
      case "schedule_accepted":
      case "schedule_committed":
      case "rounds_reached":
      case "rounds_ended":
        return this.#applyToRounds(iteration, record);
      default:
        throw new LeatError(
          "unimplemented",
          `The journal holds a record of the unknown kind "${
            (record as JournalRecord).type
          }"; use the ` +
            `version of the dispatcher that wrote it`,
        );
    }
  }

  #applyToRounds({ iterationId, rounds }: Iteration, record: ScheduleRecord): void {
    switch (record.type) {
      case "rounds_reached":
        rounds.reached = record.round;
        return;
      case "rounds_ended":
        rounds.ended = record.round;
        return;
      case "schedule_proposed":
      case "schedule_changed":
        return this.#proposeSchedule(iterationId, rounds, record);
      case "schedule_accepted": {
        const { acceptedBy, held } = need(rounds.proposal ?? undefined, record);
        acceptedBy.push(record.clientId);
        this.#roundIndices.get(iterationId)?.accepted(record.clientId);
        held.push({ before: record.deliveredRound ?? 0, rounds: record.heldRounds ?? [] });
        return;
      }
      case "schedule_committed":
        this.#commitSchedule(iterationId, rounds, record);
        for (const client of this.clientsOfIteration(iterationId)) {
          client.firstVersion ??= record.version;
        }
        this.#roundIndices.get(iterationId)?.committed(record.version);
    }
  }

  #proposeSchedule(
    iterationId: number,
    rounds: Rounds,
    record: RecordOf<"schedule_proposed" | "schedule_changed">,
  ): void {
    const { version, fromRound, distance } = record;
    const { taskIds: before = [] } = rounds.proposal?.schedule ?? rounds.schedules.at(-1) ?? {};
    const change = record.type === "schedule_changed" ? record : {
      added: new Set(record.taskIds).difference(new Set(before)),
      removed: new Set(before).difference(new Set(record.taskIds)),
    };
    const taskIds = record.type === "schedule_changed"
      ? changedTasks(before, record)
      : record.taskIds;
    rounds.lastVersion = version;
    const schedule = { version, fromRound, taskIds };
    rounds.proposal = { schedule, distance, acceptedBy: [], held: [] };
    const index = this.#roundIndices.get(iterationId);
    index?.proposed(version, change, this.clientsOfIteration(iterationId));
    // A whole list may have another order than what is left and what was added.
    if (record.type === "schedule_proposed") index?.forgetChanges();
  }

  #commitSchedule(
    iterationId: number,
    rounds: Rounds,
    record: RecordOf<"schedule_committed">,
  ): void {
    const { schedule } = need(rounds.proposal ?? undefined, record);
    // Those that begin no sooner serve nothing any more: workers may come by the thousand in one round.
    const older = rounds.schedules.filter(({ version, fromRound }) =>
      version >= record.oldestVersion && fromRound < schedule.fromRound
    );
    const mayHaveGone = this.#roundIndices.get(iterationId)?.mayHaveGone ?? true;
    rounds.schedules = !mayHaveGone ? older : older.map((old) => ({
      ...old,
      taskIds: old.taskIds.map((taskId, i) =>
        isServing(this.#tasks.get(taskId))
          ? taskId
          : schedule.taskIds[i % schedule.taskIds.length] ?? taskId
      ),
    }));
    const { kept = [] } = record;
    rounds.schedules.push(kept.length === 0 ? schedule : { ...schedule, kept });
    rounds.proposal = null;
  }

  #assignSplit(task: Task, record: RecordOf<"split_assigned">): void {
    const { source, number, index } = record;
    const splits = this.#iterations.get(task.iterationId)?.splits;
    const cursor = need(splits?.cursors[source], record);
    cursor.repetition = record.repetition;
    cursor.next = index + 1;
    noteRequest(task, source, number, index);
  }

  #addDataset(dataset: Dataset): void {
    const { datasetId } = dataset;
    if (NUMBERED.test(datasetId)) {
      this.#lastIds.dataset = Math.max(this.#lastIds.dataset, Number(datasetId));
    }
    this.#datasets.set(datasetId, dataset);
    const likeness = likenessOf(dataset);
    const those = this.#datasetsOfLikeness.get(likeness);
    if (those === undefined) this.#datasetsOfLikeness.set(likeness, new Set([dataset]));
    else those.add(dataset);
  }

  #removeDataset(dataset: Dataset): void {
    const { datasetId } = dataset;
    this.#datasets.delete(datasetId);
    this.#transient.delete(datasetId);
    const likeness = likenessOf(dataset);
    const those = this.#datasetsOfLikeness.get(likeness);
    those?.delete(dataset);
    if (those?.size === 0) this.#datasetsOfLikeness.delete(likeness);
  }

  #addJob(job: Job): void {
    this.#lastIds.job = Math.max(this.#lastIds.job, job.jobId);
    this.#jobs.set(job.jobId, job);
    this.#iterationsOfJob.set(job.jobId, new Map());
    if (job.name !== null) this.#jobOfName.set(job.name, job.jobId);
  }

  #addIteration(iteration: Iteration): void {
    const { iterationId, jobId, repetition } = iteration;
    this.#lastIds.iteration = Math.max(this.#lastIds.iteration, iterationId);
    this.#iterations.set(iterationId, iteration);
    this.#iterationsOfJob.get(jobId)?.set(repetition, iterationId);
    this.#tasksOfIteration.set(iterationId, new IterationTasks());
    this.#clientsOfIteration.set(iterationId, new Set());
    const parameters = this.#parametersOf(iteration);
    this.#serving.addIteration(iteration, parameters);
    if (parameters.numConsumers === undefined || iteration.ordered !== null) return;
    this.#roundIndices.set(iterationId, new RoundIndex(iteration.rounds));
  }

  #parametersOf({ jobId }: Iteration): JobParameters {
    return this.#jobs.get(jobId)!.parameters;
  }

  #removeIteration(iteration: Iteration): void {
    const { iterationId, jobId, repetition } = iteration;
    this.#serving.removeIteration(iteration, this.#parametersOf(iteration));
    for (const task of this.tasksOfIteration(iterationId)) this.#removeTask(task);
    this.#iterations.delete(iterationId);
    this.#tasksOfIteration.delete(iterationId);
    this.#clientsOfIteration.delete(iterationId);
    this.#roundIndices.delete(iterationId);
    const siblings = this.#iterationsOfJob.get(jobId);
    siblings?.delete(repetition);
    if (siblings?.size !== 0) return;
    const name = this.#jobs.get(jobId)?.name ?? null;
    this.#iterationsOfJob.delete(jobId);
    this.#jobs.delete(jobId);
    if (name !== null) this.#jobOfName.delete(name);
  }

  #addTask(task: Task): void {
    this.#lastIds.task = Math.max(this.#lastIds.task, task.taskId);
    this.#tasks.set(task.taskId, task);
    this.#tasksOfIteration.get(task.iterationId)?.add(task);
    if (isServing(task)) this.#roundIndices.get(task.iterationId)?.serves(task.taskId);
    const siblings = this.#tasksOfWorker.get(task.worker);
    if (siblings === undefined) this.#tasksOfWorker.set(task.worker, new Set([task]));
    else siblings.add(task);
  }

  #removeTask(task: Task): void {
    this.#tasks.delete(task.taskId);
    this.#tasksOfIteration.get(task.iterationId)?.delete(task);
    if (isServing(task)) this.#roundIndices.get(task.iterationId)?.servesNoMore(task.taskId);
    const siblings = this.#tasksOfWorker.get(task.worker);
    siblings?.delete(task);
    if (siblings?.size === 0) this.#tasksOfWorker.delete(task.worker);
  }

  #addWorker(worker: Worker): void {
    this.#workers.set(worker.name, worker);
    this.#serving.addWorker(worker);
    if (worker.process === null) return;
    const siblings = this.#workersOfProcess.get(worker.process);
    if (siblings === undefined) this.#workersOfProcess.set(worker.process, new Set([worker]));
    else siblings.add(worker);
  }

  #unlistWorker(worker: Worker): void {
    this.#serving.removeWorker(worker);
    if (worker.process === null) return;
    const siblings = this.#workersOfProcess.get(worker.process);
    siblings?.delete(worker);
    if (siblings?.size === 0) this.#workersOfProcess.delete(worker.process);
  }

  #addClient(client: Client): void {
    this.#lastIds.client = Math.max(this.#lastIds.client, client.clientId);
    this.#clients.set(client.clientId, client);
    this.#clientOfRequest.set(client.requestId, client.clientId);
    this.#clientsOfIteration.get(client.iterationId)?.add(client);
    this.#roundIndices.get(client.iterationId)?.comes(client);
    this.#serving.addClient(client);
  }

  #forgetLostWorkers(): void {
    if (this.#lostWorkers <= LOST_WORKERS_KEPT) return;
    for (const worker of this.#workers.values()) {
      if (worker.alive) continue;
      this.#workers.delete(worker.name);
      this.#unlistWorker(worker);
      if (--this.#lostWorkers <= LOST_WORKERS_KEPT) return;
    }
  }
}

/** The tasks of an iteration, found by worker and counted. */
class IterationTasks {
  readonly all = new Set<Task>();
  readonly byWorker = new Map<string, Task>();
  toComplete = 0;

  add(task: Task): void {
    this.all.add(task);
    this.byWorker.set(task.worker, task);
    if (!task.completed) this.toComplete++;
  }

  complete(task: Task): void {
    if (!task.completed) this.toComplete--;
    task.completed = true;
  }

  delete(task: Task): void {
    if (!this.all.delete(task)) return;
    this.byWorker.delete(task.worker);
    if (!task.completed) this.toComplete--;
  }
}

/** A snapshot as it is journaled. */
export function encodeSnapshot(snapshot: StateSnapshot): Uint8Array {
  return encodeMessage(snapshot);
}

/** A journaled snapshot. @throws {LeatError} `data_loss` for bytes that are none. */
export function decodeSnapshot(bytes: Uint8Array): StateSnapshot {
  try {
    return decodeMessage(bytes, { copy: true }) as StateSnapshot;
  } catch (error) {
    throw new LeatError("data_loss", "The snapshot in the journal cannot be read", {
      cause: error,
    });
  }
}

type RecordOf<T extends JournalRecord["type"]> = Extract<JournalRecord, { readonly type: T }>;
type SaveRecordType =
  | "save_begun"
  | "save_run_assigned"
  | "save_run_written"
  | "save_entry_assigned"
  | "save_entry_written";
type ScheduleRecord = RecordOf<
  | "schedule_proposed"
  | "schedule_changed"
  | "schedule_accepted"
  | "schedule_committed"
  | "rounds_reached"
  | "rounds_ended"
>;

// deno-lint-ignore no-explicit-any -- an empty set is one of anything
const NOTHING: ReadonlySet<any> = new Set();

function need<T>(entity: T | undefined, record: JournalRecord): T {
  if (entity !== undefined) return entity;
  throw new LeatError(
    "data_loss",
    `The journal is not whole: "${record.type}" speaks of something that no earlier record made`,
    { details: { record: record.type } },
  );
}

/** Where a cluster begins to count its tasks and clients: 32 bits of its id. */
function firstIdOf(clusterId: string): number {
  return Number.parseInt(clusterId.slice(0, 8), 16);
}

function trimOldest<K, V>(map: Map<K, V>, sizeMax: number): void {
  for (const key of map.keys()) {
    if (map.size <= sizeMax) return;
    map.delete(key);
  }
}

function likenessOf({ fingerprint, compression }: Pick<Dataset, "fingerprint" | "compression">) {
  return `${fingerprint} ${compression ?? "auto"}`;
}
