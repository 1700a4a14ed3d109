/**
 * The dispatcher (paper section 3.1): knows the datasets, jobs, workers and clients, gives workers
 * tasks, tells clients what to read, and hands out splits. It touches no data.
 *
 * Its order of work is **append, then apply, then answer**. A handler decides, in one turn; each
 * change is appended to the journal and applied; and whatever would leave (an answer, a message to a
 * worker) waits until everything appended before it is durable. That holds for answers that only
 * read as well: what they read may not survive a crash yet. If the journal fails, the dispatcher
 * dies without another word, and its next life begins from what the journal holds.
 *
 * Who was heard of when is not journaled: after a restart everybody counts as just heard. Nor is what
 * they say of how they are doing.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { ClientProtocol } from "../client/protocol.ts";
import type { Actor, ActorContext } from "../runtime/actor.ts";
import type { AnswerOf, Delivery, RequestOf } from "../runtime/protocol.ts";
import type { FencedRef } from "../runtime/ref.ts";
import { ClientHints } from "./client_hints.ts";
import { ClientLinks } from "./client_links.ts";
import { type ClientEnd, clientOf, endClient, newsFor } from "./clients.ts";
import { datasetOf, registerDataset, unusedDatasets } from "./datasets.ts";
import { checkScaling, type ScalingOptions } from "./autoscaler.ts";
import { describeState, type SoftState } from "./describe.ts";
import { Figures } from "./figures.ts";
import { parametersOf } from "./iterations.ts";
import type { Journal } from "./journal.ts";
import { type Listing, SplitListings } from "./listing.ts";
import { openIteration } from "./opening.ts";
import type { DispatcherInfo, DispatcherProtocol } from "./protocol.ts";
import { dispatcherChecks } from "./protocol_check.ts";
import type { JournalRecord } from "./records.ts";
import { type DialWorker, WorkerReach } from "./reach.ts";
import { openJournal, type Recovered } from "./recovery.ts";
import { Consumers, heardConsumer, isCoordinated, reviewRounds } from "./rounds.ts";
import { digestOfSplits } from "./split_table.ts";
import { isAnswerable, isOrdered, noteReceived } from "./ordered.ts";
import { Scaling } from "./scaling.ts";
import { assignSplit, handsOutSplits } from "./splits.ts";
import { cancelSave, getSaveWork, hasSaveWork, isSave, isSaveOver } from "./saving.ts";
import type { DispatcherState } from "./state.ts";
import { checkWorkerNames, named } from "./static_shards.ts";
import { TaskLists } from "./task_lists.ts";
import type { Turn } from "./turn.ts";
import { WaitingRequests } from "./waiting_requests.ts";
import { loseWorker, workerHeartbeat } from "./workers.ts";

/** Tells programs of one protocol from those of another. */
const VERSION = "0.1";
/** Requests for splits, or work, that may wait for one iteration's. Beyond it: `resource_exhausted`. */
const WAITING_MAX = 100_000;
/** How often silence is looked for: a fraction of the shortest timeout, within these bounds, in ms. */
const SWEEP_FRACTION = 4;
const SWEEP_MIN_MS = 10;
const SWEEP_MAX_MS = 5_000;
/** So long, in ms, a client that has registered a dataset may take to open its job at least. */
const DATASET_UNUSED_MIN_MS = 60_000;
/** Whoever looks finds figures no older than this, in ms, or asks for new ones. */
const FIGURES_FRESH_MS = 1_000;
/** Workers that are asked for new figures at a time, those with the oldest first. */
const FIGURES_ASKED_MAX = 100;

/** How a dispatcher is set up: plain data but for the last two. */
export interface DispatcherConfig {
  /** Which of the world's logs is its journal. Default `"dispatcher"`. */
  readonly logName?: string;
  /** A worker silent for longer is lost: its tasks end and are fenced. Default 60,000. */
  readonly workerTimeoutMs?: number;
  /** A client silent for longer is released. Default 120,000. */
  readonly clientTimeoutMs?: number;
  /**
   * A client whose link was closed at its end, as when its process ends, is released if its node does
   * not come back for so long. Default 10,000; no longer than `clientTimeoutMs`.
   */
  readonly clientGraceMs?: number;
  /**
   * An iteration without clients is forgotten after this, and so is a dataset that was registered for
   * jobs alone when there is none left; -1: never. Default 300,000.
   */
  readonly jobGcTimeoutMs?: number;
  /**
   * Coordinated reads: a task that a consumer cannot reach for longer is replaced; one that no
   * consumer reaches, at once. Default 10,000.
   */
  readonly lostTaskTimeoutMs?: number;
  /**
   * The workers that share the jobs of static policies, by name: the index of each is its shard. Jobs
   * keep the list that they began with. Default: none, so that such jobs are refused.
   */
  readonly workers?: readonly string[];
  /**
   * DETERMINISTIC: how far beyond what the reader has splits are handed out. It bounds what is kept of
   * an iteration. Default 256.
   */
  readonly windowSplits?: number;
  /** Records after which the journal is compacted: the most that a start has to replay. Default 20,000. */
  readonly journalRecordsMax?: number;
  /** Bytes of records after which it is compacted (or the size of the snapshot, if that is more). Default 16 MiB. */
  readonly journalBytesMax?: number;
  /** Limits and times of what it says of how many workers there should be. */
  readonly scaling?: ScalingOptions;
  /** Puts something before the journal, which gives that state: tests watch it so, or break it. */
  readonly wrapJournal?: (journal: Journal, state: DispatcherState) => Journal;
  /** Checks that a worker's address answers; left out, nobody checks. */
  readonly dialWorker?: DialWorker;
}

type Settings =
  & Required<Omit<DispatcherConfig, "wrapJournal" | "dialWorker">>
  & Pick<DispatcherConfig, "wrapJournal" | "dialWorker">;

const DEFAULTS: Settings = {
  logName: "dispatcher",
  workerTimeoutMs: 60_000,
  clientTimeoutMs: 120_000,
  clientGraceMs: 10_000,
  jobGcTimeoutMs: 300_000,
  lostTaskTimeoutMs: 10_000,
  workers: [],
  windowSplits: 256,
  journalRecordsMax: 20_000,
  journalBytesMax: 16 * 2 ** 20,
  scaling: {},
};

type SplitRequest = RequestOf<DispatcherProtocol, "getSplit">;
type SplitAnswer = AnswerOf<DispatcherProtocol, "getSplit">;
type SaveRequest = RequestOf<DispatcherProtocol, "getSaveWork">;
type SaveAnswer = AnswerOf<DispatcherProtocol, "getSaveWork">;

/**
 * Makes the dispatcher.
 *
 * @example
 * ```ts ignore
 * system.spawn<DispatcherProtocol>({ name: "dispatcher", create: (context) => createDispatcher(context) });
 * ```
 */
export function createDispatcher(
  context: ActorContext<DispatcherProtocol>,
  config: DispatcherConfig = {},
): Actor<DispatcherProtocol> {
  const dispatcher = new Dispatcher(context, config);
  return {
    handlers: {
      hello: () =>
        dispatcher.read((state): DispatcherInfo => ({
          version: VERSION,
          clusterId: state.clusterId,
          life: state.lives,
        })),
      registerDataset: (request) => dispatcher.registerDataset(request),
      getDataset: ({ datasetId }) => dispatcher.read((state) => datasetOf(state, datasetId)),
      openIteration: (request, delivery) => dispatcher.openIteration(request, delivery),
      clientHeartbeat: (request, delivery) => dispatcher.clientHeartbeat(request, delivery),
      releaseClient: ({ clientId, cancel }) => dispatcher.releaseClient(clientId, cancel),
      workerHeartbeat: (request) => dispatcher.workerHeartbeat(request),
      getSplit: (request, delivery) => dispatcher.getSplit(request, delivery),
      getSaveWork: (request, delivery) => dispatcher.getSaveWork(request, delivery),
      describe: (request) => dispatcher.describe(request?.refresh === true),
    },
    checks: dispatcherChecks,
    start: () => dispatcher.start(),
    stop: () => dispatcher.stop(),
  };
}

class Dispatcher {
  readonly #context: ActorContext<DispatcherProtocol>;
  readonly #config: Settings;
  readonly #consumers = new Consumers();
  readonly #reach: WorkerReach;
  readonly #clientLinks: ClientLinks;
  readonly #figures: Figures;
  readonly #taskLists: TaskLists;
  readonly #scaling: Scaling;
  /** Monotonic times at which workers and clients were last heard of. */
  readonly #workersHeardMs = new Map<string, number>();
  readonly #clientsHeardMs = new Map<number, number>();
  /** Since when, as far as was looked, no job uses transient datasets. */
  readonly #unusedSinceMs = new Map<string, number>();
  /** Since when iterations have had no client. */
  readonly #idleSinceMs = new Map<number, number>();
  /** Requests for splits, or work, that there is not yet. */
  readonly #waiting: WaitingRequests;
  /** What changed in the turn that runs now and has consequences. */
  readonly #toWake = new Set<string>();
  readonly #toReview = new Set<number>();
  readonly #toSettle = new Set<number>();
  /** Records that were committed in this life. */
  #commits = 0;
  #opening: Promise<Recovered> | undefined;
  #opened: Recovered | undefined;
  #state!: DispatcherState;
  #journal!: Journal;
  #listings!: SplitListings;
  #hints!: ClientHints;
  #turn!: Turn;

  constructor(context: ActorContext<DispatcherProtocol>, config: DispatcherConfig) {
    this.#context = context;
    const settings = { ...DEFAULTS, ...config };
    const clientGraceMs = Math.min(settings.clientGraceMs, settings.clientTimeoutMs);
    this.#config = { ...settings, clientGraceMs };
    this.#waiting = new WaitingRequests(WAITING_MAX, () => context.world.nowMs());
    this.#reach = new WorkerReach(context, config.dialWorker);
    this.#clientLinks = new ClientLinks(context, (clientId) => {
      const wait = this.turn((turn) => this.#endClient(turn, clientId, "gone"));
      // A journal that fails ends this life by itself.
      if (wait instanceof Promise) wait.catch(() => {});
    });
    this.#taskLists = new TaskLists(context.self.incarnation);
    this.#figures = new Figures(checkScaling(config.scaling).measureMs);
    this.#scaling = new Scaling(config.scaling);
  }

  async start(): Promise<void> {
    const { world, random } = this.#context;
    const { wrapJournal } = this.#config;
    this.#opening = this.#open();
    this.#opened = await this.#opening;
    const { state, journal } = this.#opened;
    this.#state = state;
    this.#journal = wrapJournal?.(journal, state) ?? journal;
    this.#turn = {
      state,
      random: random.fork("ids and seeds"),
      get nowMs() {
        return world.nowMs();
      },
      get wallMs() {
        return world.wallMs();
      },
      listedWorkers: checkWorkerNames(this.#config.workers),
      commit: (record) => this.#commit(record),
    };
    this.#listings = new SplitListings({
      context: this.#context,
      state,
      committed: () => this.#journal.committed(),
      onListed: (iterationId, listing) => this.#listed(iterationId, listing),
    });
    this.#hints = new ClientHints({
      context: this.#context,
      state,
      committed: () => this.#journal.committed(),
    });
    await this.turn((turn) => this.#begin(turn));
    this.#sweepLater();
    this.#scaleLater();
  }

  /** Asks that are still open are refused, so that they are asked again of the next life. */
  async stop(): Promise<void> {
    this.#waiting.refuse(new LeatError("unavailable", "The dispatcher is stopping"));
    const opened = await this.#opening?.catch(() => undefined);
    await opened?.journal.close();
  }

  /**
   * Decides; the answer or error is given when everything it rests on is durable.
   *
   * @throws {LeatError} what was decided to be thrown; `internal` for a bug.
   */
  turn<A>(decide: (turn: Turn) => A): A | Promise<A> {
    const commits = this.#commits;
    let answer: () => A;
    try {
      answer = outcomeOf(() => decide(this.#turn));
      this.#conclude();
    } catch (error) {
      answer = this.#failed(error, this.#commits > commits);
    }
    return this.#release(answer);
  }

  read<A>(look: (state: DispatcherState) => A): A | Promise<A> {
    return this.turn(({ state }) => look(state));
  }

  registerDataset(
    request: RequestOf<DispatcherProtocol, "registerDataset">,
  ):
    | AnswerOf<DispatcherProtocol, "registerDataset">
    | Promise<AnswerOf<DispatcherProtocol, "registerDataset">> {
    return this.turn((turn) => {
      const answer = registerDataset(turn, request);
      // Whoever registers it is about to use it.
      this.#unusedSinceMs.delete(answer.datasetId);
      return answer;
    });
  }

  openIteration(
    request: RequestOf<DispatcherProtocol, "openIteration">,
    { source }: Delivery,
  ):
    | AnswerOf<DispatcherProtocol, "openIteration">
    | Promise<
      AnswerOf<DispatcherProtocol, "openIteration">
    > {
    return this.turn((turn) => {
      const answer = openIteration(turn, request, {
        placeOf: (clientId) => this.#consumers.placeOf(clientId),
        isUnreadable: (iterationId) => this.#isUnreadable(iterationId),
      });
      // One that is stopped while it joins may never say a word as a client, nor good-bye.
      this.#clientLinks.heard(answer.clientId, source);
      return answer;
    });
  }

  clientHeartbeat(
    request: RequestOf<DispatcherProtocol, "clientHeartbeat">,
    { source }: Delivery,
  ):
    | AnswerOf<DispatcherProtocol, "clientHeartbeat">
    | Promise<
      AnswerOf<DispatcherProtocol, "clientHeartbeat">
    > {
    return this.turn((turn) => {
      const [client, iteration] = clientOf(this.#state, request.clientId);
      this.#clientsHeardMs.set(client.clientId, turn.nowMs);
      this.#hints.heard(client.clientId, source as FencedRef<ClientProtocol>);
      this.#clientLinks.heard(client.clientId, source);
      if (isCoordinated(turn, iteration)) {
        heardConsumer(turn, client, this.#consumers, request, this.#config.lostTaskTimeoutMs);
        reviewRounds(turn, iteration.iterationId, this.#consumers);
      }
      if (isOrdered(turn.state, iteration)) noteReceived(turn, iteration, client, request);
      this.#figures.clientHeard(this.#state, client.clientId, request.figures);
      const { iterationId } = iteration;
      const changed = this.#taskLists.changedSince(iterationId, request.taskList);
      return {
        ...newsFor(this.#state, client, changed, request),
        taskList: this.#taskLists.nameOf(iterationId),
        timeoutMs: this.#config.clientGraceMs,
      };
    });
  }

  releaseClient(clientId: number, cancel = false): null | Promise<null> {
    return this.turn((turn) => {
      if (cancel) cancelSave(turn, clientId);
      this.#endClient(turn, clientId, "released");
      return null;
    });
  }

  #endClient(turn: Turn, clientId: number, why: ClientEnd): void {
    endClient(turn, clientId, why, this.#consumers.nextRound(clientId) ?? null);
  }

  /** Whether one of its tasks cannot read on, as far as its worker has told. */
  #isUnreadable(iterationId: number): boolean {
    return [...this.#state.tasksOfIteration(iterationId)].some(({ worker, taskId }) =>
      this.#figures.failureOf(worker, taskId) !== undefined
    );
  }

  workerHeartbeat(
    request: RequestOf<DispatcherProtocol, "workerHeartbeat">,
  ):
    | AnswerOf<DispatcherProtocol, "workerHeartbeat">
    | Promise<
      AnswerOf<DispatcherProtocol, "workerHeartbeat">
    > {
    return this.turn((turn) => {
      const answer = workerHeartbeat(turn, request);
      if (request.leaving !== true && answer.follows === undefined) {
        this.#workersHeardMs.set(request.name, turn.nowMs);
        if (request.isPrivate !== true) this.#reach.heard(request.name, request.worker);
        this.#figures.workerHeard(this.#state, request, turn.nowMs);
      }
      // What it is to do is in the answer.
      this.#toWake.delete(request.name);
      return { ...answer, timeoutMs: this.#config.workerTimeoutMs };
    });
  }

  getSplit(request: SplitRequest, { deadlineMs }: Delivery): SplitAnswer | Promise<SplitAnswer> {
    return this.#answerOrWait(
      request.taskId,
      deadlineMs,
      (iterationId) => this.#isAnswerable(iterationId, request),
      (turn) => assignSplit(turn, request, this.#config.windowSplits),
    );
  }

  getSaveWork(request: SaveRequest, { deadlineMs }: Delivery): SaveAnswer | Promise<SaveAnswer> {
    return this.#answerOrWait(
      request.taskId,
      deadlineMs,
      (iterationId) => hasSaveWork(this.#state, iterationId, request),
      (turn) => getSaveWork(turn, request),
    );
  }

  /** Answers a task's request, or has it wait until it can be answered. */
  #answerOrWait<A>(
    taskId: number,
    deadlineMs: number,
    isAnswerable: (iterationId: number) => boolean,
    decide: (turn: Turn) => A,
  ): A | Promise<A> {
    const iterationId = this.#state.tasks.get(taskId)?.iterationId;
    if (iterationId === undefined || isAnswerable(iterationId)) return this.turn(decide);
    const answer = this.#waiting.wait(iterationId, {
      deadlineMs,
      isAnswerable: () => !this.#state.tasks.has(taskId) || isAnswerable(iterationId),
      answer: () => this.turn(decide),
    });
    this.#listings.ensure(iterationId);
    return answer;
  }

  describe(refresh: boolean):
    | AnswerOf<DispatcherProtocol, "describe">
    | Promise<
      AnswerOf<DispatcherProtocol, "describe">
    > {
    return this.turn(({ state, nowMs }) => {
      if (refresh) this.#refreshFigures(nowMs);
      const soft = this.#softState();
      return describeState(state, soft, this.#scaling.describe(state, soft));
    });
  }

  #softState(): SoftState {
    const { nowMs, wallMs } = this.#turn;
    return {
      figures: this.#figures,
      nowMs,
      wallOffsetMs: wallMs - nowMs,
      heardMs: (worker) => this.#workersHeardMs.get(worker) ?? nowMs,
      placeOf: (clientId) => this.#consumers.placeOf(clientId),
      unreachable: (worker) => this.#reach.unreachable(worker),
    };
  }

  /** Workers that have said nothing of themselves for a while send a heartbeat when they are woken. */
  #refreshFigures(nowMs: number): void {
    const age = (name: string) => this.#figures.ageMs(name, nowMs);
    const freshMs = Math.min(FIGURES_FRESH_MS, this.#scaling.intervalMs / 2);
    const stale = [...this.#workersHeardMs.keys()].filter((name) => age(name) > freshMs);
    stale.sort((a, b) => age(b) - age(a));
    for (const name of stale.slice(0, FIGURES_ASKED_MAX)) this.#wake(name);
  }

  async #open(): Promise<Recovered> {
    const { logName, journalRecordsMax, journalBytesMax } = this.#config;
    return await openJournal(await this.#context.world.openLog(logName), {
      recordsMax: journalRecordsMax,
      bytesMax: journalBytesMax,
      isCompactedEarly: () => this.#context.world.fault("dispatcher.compact_early"),
      macrotask: (fn) => this.#context.world.macrotask(fn),
      onFailure: (error) => {
        const message = `The journal of the dispatcher failed: ${error.message}`;
        this.#die(new LeatError(error.code, message, { cause: error }));
      },
    });
  }

  #begin(turn: Turn): void {
    const { state, nowMs, wallMs, random } = turn;
    if (state.clusterId === "") {
      turn.commit({ type: "cluster_created", clusterId: random.hex64() });
    }
    const { incarnation } = this.#context.self;
    turn.commit({ type: "dispatcher_started", incarnation, wallMs });
    for (const { name } of state.workers.values()) this.#workersHeardMs.set(name, nowMs);
    for (const clientId of state.clients.keys()) this.#clientsHeardMs.set(clientId, nowMs);
    for (const iterationId of state.iterations.keys()) {
      if (state.clientsOfIteration(iterationId).size === 0) {
        this.#idleSinceMs.set(iterationId, nowMs);
      }
      if (this.#lacksSplits(iterationId)) this.#listings.ensure(iterationId);
    }
  }

  /** Append, then apply. A change that was appended and cannot be applied is a bug, whatever is thrown. */
  #commit(record: JournalRecord): void {
    this.#journal.append(record);
    this.#commits++;
    this.#noteBefore(record);
    try {
      this.#state.apply(record);
    } catch (cause) {
      const { message } = LeatError.from(cause);
      throw new Error(`A record "${record.type}" cannot be applied: ${message}`, { cause });
    }
    this.#noteAfter(record);
  }

  /**
   * A bug that has changed nothing costs its asker alone. One amid changes is the end of this life, and
   * of the changes: the next life would read half of what was decided, or what it cannot apply.
   */
  #failed(error: unknown, hasChanged: boolean): () => never {
    const { message, stack } = LeatError.from(error);
    const failure = new LeatError("internal", `The dispatcher has failed: ${message}`, {
      cause: error,
    });
    if (hasChanged) {
      this.#opened!.journal.abandon();
      this.#die(failure);
      throw failure;
    }
    this.#context.world.log("error", failure.message, { stack });
    return () => {
      throw failure;
    };
  }

  /** Consequences that show only in the state before the record. */
  #noteBefore(record: JournalRecord): void {
    if (record.type === "task_ended") {
      const task = this.#state.tasks.get(record.taskId);
      if (task === undefined) return;
      this.#toWake.add(task.worker);
      this.#toReview.add(task.iterationId);
      this.#toSettle.add(task.iterationId);
      this.#taskChanged(task.iterationId, task.taskId);
    } else if (record.type === "iteration_collected") {
      const { iterationId } = record;
      for (const { worker } of this.#state.tasksOfIteration(iterationId)) this.#toWake.add(worker);
      this.#idleSinceMs.delete(iterationId);
      this.#taskLists.forget(iterationId);
      this.#consumers.lookedAt(iterationId);
      this.#toSettle.add(iterationId);
    } else if (record.type === "client_released") {
      const { clientId } = record;
      const iterationId = this.#state.clients.get(clientId)?.iterationId;
      this.#clientsHeardMs.delete(clientId);
      this.#figures.clientGone(clientId);
      this.#consumers.left(clientId);
      this.#hints.gone(clientId);
      this.#clientLinks.gone(clientId);
      if (iterationId === undefined) return;
      this.#toReview.add(iterationId);
      // Consumers of a coordinated read wait for one another, and not for this one any more.
      this.#hints.changed(iterationId);
      if (this.#state.clientsOfIteration(iterationId).size === 1) {
        this.#idleSinceMs.set(iterationId, this.#turn.nowMs);
      }
    }
  }

  #noteAfter(record: JournalRecord): void {
    switch (record.type) {
      case "task_created":
        this.#toWake.add(record.worker);
        return;
      case "task_ready":
      case "task_completed": {
        const { iterationId } = this.#state.tasks.get(record.taskId)!;
        this.#toReview.add(iterationId);
        // That clients can read a task is nothing that requests for splits wait for.
        if (record.type === "task_ready") this.#taskChanged(iterationId, record.taskId);
        else this.#toSettle.add(iterationId);
        return;
      }
      case "client_opened":
        this.#clientsHeardMs.set(record.clientId, this.#turn.nowMs);
        this.#idleSinceMs.delete(record.iterationId);
        this.#toReview.add(record.iterationId);
        this.#toSettle.add(record.iterationId);
        return;
      case "splits_listed":
      case "splits_failed":
        this.#hints.changed(record.iterationId);
        this.#toSettle.add(record.iterationId);
        return;
      case "iteration_finished":
      case "schedule_changed":
      case "schedule_committed":
      case "rounds_ended":
        this.#hints.changed(record.iterationId);
        return;
      case "save_run_written":
      case "save_entry_written":
        this.#toSettle.add(this.#state.tasks.get(record.taskId)!.iterationId);
        return;
      case "iteration_created":
      case "sequences_received":
        this.#toSettle.add(record.iterationId);
        return;
      case "worker_registered":
        this.#noteUnlisted(record.name);
        this.#listings.workerLost(record.name);
        this.#ensureListings(record.name);
        return;
      case "worker_lost":
        this.#workersHeardMs.delete(record.name);
        this.#reach.lost(record.name);
        this.#figures.workerLost(record.name);
        this.#listings.workerLost(record.name);
        return;
    }
  }

  #taskChanged(iterationId: number, taskId: number): void {
    this.#taskLists.changed(iterationId, taskId, this.#state.tasksOfIteration(iterationId).size);
    this.#hints.changed(iterationId);
  }

  /** Splits may have waited for somebody to list them. */
  #ensureListings(worker: string): void {
    for (const { iterationId } of this.#state.iterationsFor(this.#state.workers.get(worker)!)) {
      if (this.#lacksSplits(iterationId)) this.#listings.ensure(iterationId);
    }
  }

  #noteUnlisted(worker: string): void {
    const { workers } = this.#config;
    if (workers.length === 0 || workers.includes(worker)) return;
    this.#context.world.log(
      "info",
      `Worker "${worker}" is not among the listed workers (${named(workers)}): jobs of static ` +
        `policies (FILE, DATA, …) give it nothing to do`,
    );
  }

  /** The consequences of a turn: schedules, listings, requests that waited, workers that have news. */
  #conclude(): void {
    if (this.#toReview.size + this.#toSettle.size + this.#toWake.size === 0) return;
    for (const iterationId of this.#toReview) {
      reviewRounds(this.#turn, iterationId, this.#consumers);
    }
    this.#toReview.clear();
    for (const iterationId of this.#toSettle) {
      this.#toSettle.delete(iterationId);
      if (this.#lacksSplits(iterationId)) this.#listings.ensure(iterationId);
      this.#waiting.settle(iterationId);
    }
    for (const name of this.#toWake) this.#wake(name);
    this.#toWake.clear();
  }

  /** Whether a request for a split need not wait. */
  #isAnswerable(iterationId: number, request: SplitRequest): boolean {
    const iteration = this.#state.iterations.get(iterationId);
    if (iteration === undefined) return true;
    if (!isOrdered(this.#state, iteration)) return !this.#lacksSplits(iterationId);
    return isAnswerable(this.#state, iteration, request, this.#config.windowSplits);
  }

  /** Whether the iteration's splits have to be listed before any can be handed out. */
  #lacksSplits(iterationId: number): boolean {
    const iteration = this.#state.iterations.get(iterationId);
    return iteration?.splits === null && iteration.splitsError === null &&
      handsOutSplits(parametersOf(this.#state, iteration).processingMode);
  }

  #listed(iterationId: number, listing: Listing): void {
    const wait = this.turn(({ commit }) => {
      if ("error" in listing) {
        commit({ type: "splits_failed", iterationId, error: listing.error.toWire() });
      } else {
        const { bounds, begun } = listing;
        commit({ type: "splits_listed", iterationId, bounds, digest: digestOfSplits(bounds) });
        if (begun !== undefined) commit({ type: "save_begun", iterationId, ...begun });
      }
    });
    // A journal that fails ends this life by itself.
    if (wait instanceof Promise) wait.catch(() => {});
  }

  #wake(name: string): void {
    const worker = this.#state.workers.get(name);
    if (!worker?.alive) return;
    const wait = this.#journal.committed();
    if (wait === undefined) this.#context.tell(worker.ref, "wake", null);
    else wait.then(() => this.#context.tell(worker.ref, "wake", null), () => {});
  }

  #release<A>(answer: () => A): A | Promise<A> {
    const wait = this.#journal.committed();
    return wait === undefined ? answer() : wait.then(answer);
  }

  #die(error: LeatError): void {
    // Of what is cancelled nobody dies.
    const cause = error.code === "cancelled"
      ? new LeatError("internal", error.message, { cause: error })
      : error;
    this.#context.run(() => Promise.reject(cause));
  }

  #sweepLater(): void {
    const { workerTimeoutMs, clientGraceMs, jobGcTimeoutMs } = this.#config;
    const timeouts = [
      workerTimeoutMs,
      clientGraceMs,
      ...(jobGcTimeoutMs < 0 ? [] : [jobGcTimeoutMs]),
    ];
    const fractionMs = Math.min(...timeouts) / SWEEP_FRACTION;
    const delayMs = Math.max(SWEEP_MIN_MS, Math.min(SWEEP_MAX_MS, fractionMs));
    const dueMs = this.#turn.nowMs + delayMs;
    this.#context.timer(delayMs, () => {
      this.#forgive(this.#turn.nowMs - dueMs);
      const wait = this.turn((turn) => this.#sweep(turn));
      if (wait instanceof Promise) wait.catch(() => {});
      this.#sweepLater();
    });
  }

  /** It looks also while nobody asks: what is wanted rests on what was. */
  #scaleLater(): void {
    this.#context.timer(this.#scaling.intervalMs, () => {
      const isOfInterest = this.#scaling.observe(this.#state, this.#softState());
      if (isOfInterest) this.#refreshFigures(this.#turn.nowMs);
      this.#scaleLater();
    });
  }

  /** While this thread stood still, nobody could be heard: that time is no silence of theirs. */
  #forgive(lateMs: number): void {
    if (lateMs <= 0) return;
    const { nowMs } = this.#turn;
    const { closedMs } = this.#clientLinks;
    const since: Map<unknown, number>[] = [this.#workersHeardMs, this.#clientsHeardMs, closedMs];
    for (const times of since) {
      for (const [who, ms] of times) times.set(who, Math.min(nowMs, ms + lateMs));
    }
  }

  /** Ends what was silent for too long. */
  #sweep(turn: Turn): void {
    const { workerTimeoutMs, clientTimeoutMs, clientGraceMs, jobGcTimeoutMs } = this.#config;
    const { nowMs, state } = turn;
    this.#waiting.expire();
    for (const [name, heardMs] of this.#workersHeardMs) {
      if (nowMs - heardMs >= workerTimeoutMs && state.workers.get(name)?.alive) {
        loseWorker(turn, name);
      }
    }
    for (const [clientId, heardMs] of this.#clientsHeardMs) {
      if (nowMs - heardMs >= clientTimeoutMs) this.#endClient(turn, clientId, "timed_out");
    }
    for (const [clientId, sinceMs] of this.#clientLinks.closedMs) {
      if (nowMs - sinceMs >= clientGraceMs) this.#endClient(turn, clientId, "gone");
    }
    if (jobGcTimeoutMs < 0) return;
    for (const [iterationId, sinceMs] of this.#idleSinceMs) {
      if (nowMs - sinceMs < jobGcTimeoutMs) continue;
      // Nobody need wait for a save.
      const iteration = state.iterations.get(iterationId)!;
      if (isSave(state, iteration) && !isSaveOver(iteration)) continue;
      turn.commit({ type: "iteration_collected", iterationId });
    }
    this.#forgetDatasets(turn, Math.max(jobGcTimeoutMs, DATASET_UNUSED_MIN_MS));
  }

  #forgetDatasets({ state, nowMs, commit }: Turn, afterMs: number): void {
    const unused = new Set(unusedDatasets(state));
    for (const datasetId of this.#unusedSinceMs.keys()) {
      if (!unused.has(datasetId)) this.#unusedSinceMs.delete(datasetId);
    }
    for (const datasetId of unused) {
      const sinceMs = this.#unusedSinceMs.get(datasetId) ?? nowMs;
      this.#unusedSinceMs.set(datasetId, sinceMs);
      if (nowMs - sinceMs >= afterMs) commit({ type: "dataset_forgotten", datasetId });
    }
  }
}

/** What a decision comes to: an answer, or a known error. A bug is thrown. */
function outcomeOf<A>(decide: () => A): () => A {
  try {
    const answer = decide();
    return () => answer;
  } catch (error) {
    if (!(error instanceof LeatError)) throw error;
    return () => {
      throw error;
    };
  }
}
