/**
 * What the mode of a job decides: which requests to join it are served, who is given which work, when
 * an iteration is done, and what its clients and people are told. The rest of the dispatcher asks the mode
 * of a job, and never which one that is.
 *
 * A mode keeps nothing itself. What it has to remember is in the state, which records alone change.
 * docs/adding-a-mode.md says what a new mode needs.
 *
 * @module
 */
import { LeatError, type WireError } from "../../../core/error.ts";
import type { Shard } from "../../../data/sharding/sharding_policy.ts";
import type { AnswerOf, RequestOf } from "../../runtime/protocol.ts";
import type { Random } from "../../runtime/world.ts";
import type { Consumers } from "./consumers.ts";
import type { Client, Dataset, Iteration, Job, Task, TaskOfIteration } from "../state/entities.ts";
import { type ModeState, noRounds } from "./mode_state.ts";
import type { AskWorker, Listing, ListingFailure } from "../jobs/listing.ts";
import type { DispatcherDescription, DispatcherProtocol, JobParameters } from "../protocol.ts";
import type { ConsumerPlace, RoundsDescription, TaskDescription } from "../protocol_figures.ts";
import type { RecordOf } from "../journal/records.ts";
import type { RoundIndex } from "./coordinated/round_index.ts";
import { checkIsNotNamedAsSave } from "./save/save_folder.ts";
import type { SaveAnswer, SaveRequest } from "./save/saving.ts";
import { packSplits } from "../state/split_table.ts";
import type { SplitAnswer, SplitRequest } from "./splits.ts";
import type { DispatcherState } from "../state/state.ts";
import type { Tables } from "../state/tables.ts";
import type { Transaction } from "../transaction.ts";

/** A request to join an iteration. */
export type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;

/** The iteration that a mode is asked about, and the state that it is part of. */
export interface Subject {
  readonly state: DispatcherState;
  readonly iteration: Iteration;
}

/** What is known when a request to join is checked. */
export interface JoinFacts {
  /** The dispatcher's list of workers, by name; empty: it has none. */
  readonly listedWorkers: readonly string[];
  /** How many elements the dataset has; -1: it has no end; -2: that is not known. */
  readonly cardinality: number;
}

/** What is known of a job when a client that may join it is admitted. */
export interface JobFacts {
  /** Undefined: it is yet to be created. */
  readonly job: Job | undefined;
  /** The name of the identity whose job it is, or will be. */
  readonly owner: string;
  /** Whether a task of the iteration cannot read on, as far as its worker has told. */
  readonly isUnreadable: (iterationId: number) => boolean;
}

/** What follows from a client's coming. */
export interface Admission {
  /** The iterations that are forgotten first: the one that the client joins begins anew. */
  readonly replaced: readonly Iteration[];
  /** What is recorded of the client beside what is recorded of all. */
  readonly client: Partial<RecordOf<"client_opened">>;
}

/** What is recorded of an iteration that begins, beside what is recorded of all. */
export type Beginning = Pick<
  RecordOf<"iteration_created">,
  "seed" | "startAt" | "behind" | "run"
>;

/** What people are told of an iteration. */
export type IterationDescription = DispatcherDescription["jobs"][number]["iterations"][number];

/** What a client says in a heartbeat. */
export type HeartbeatRequest = RequestOf<DispatcherProtocol, "clientHeartbeat">;
/** What it is told. */
export type ClientNews = AnswerOf<DispatcherProtocol, "clientHeartbeat">;

/** What it takes beside the state to hear a client. */
export interface HeardWith {
  readonly consumers: Consumers;
  /** How long one of several consumers may not reach a task before that is replaced, in ms. */
  readonly lostTaskTimeoutMs: number;
}

/** See the module. What a mode does not override is what most modes do. */
export abstract class Mode {
  /** Whether only the dispatcher's list of workers serves its jobs, each worker with a share of its own. */
  readonly hasFixedWorkers: boolean = false;
  /** Whether a policy of the job's own says which share is whose. */
  readonly takesPolicy: boolean = false;
  /** Whether the splits of an iteration have to be listed before its tasks can work. */
  readonly needsSplits: boolean = false;
  /** Whether the tasks of an iteration that has failed are ended; else they come to an end by themselves. */
  readonly endsFailedTasks: boolean = true;

  /** A request to join under the name that its job has here. @throws {LeatError} for a name of others. */
  named(request: OpenRequest): OpenRequest {
    checkIsNotNamedAsSave(request);
    return request;
  }

  /** @throws {LeatError} for a request to join that the mode does not serve. */
  check({ parameters: { policy, ordered }, runId }: OpenRequest, _facts: JoinFacts): void {
    if ((policy !== undefined) !== this.takesPolicy) {
      throw invalid("A policy goes with processingMode CUSTOM, and with no other");
    }
    if (runId !== undefined) throw runIdElsewhere();
    if (ordered !== undefined) {
      throw invalid("An order of splits goes with processingMode DETERMINISTIC, and with no other");
    }
  }

  /** The error for a client that means something else by the job; `has` and `asked` are in words. */
  disagreement({ name }: Job, has: string, asked: string, difference: string): LeatError {
    return invalid(
      `The job "${name}" exists with other parameters: it has ${has}; this client asks for ` +
        `${asked}.${difference} Use the same parameters, or another jobName`,
    );
  }

  /**
   * Whether the iteration has come to an end that its clients are told of: it begins anew for the next
   * client, even if others are still there.
   */
  isOver(_iteration: Iteration): boolean {
    return false;
  }

  /**
   * Admits a client. By default an iteration begins anew that has no clients, and a task that cannot read
   * on: what it could not read may be there now.
   *
   * @throws {LeatError} for a client that may not read.
   */
  admit(
    state: DispatcherState,
    { repetition }: OpenRequest,
    { job, isUnreadable }: JobFacts,
  ): Admission {
    const found = job === undefined ? undefined : state.iterationOf(job.jobId, repetition);
    const isReplaced = found !== undefined && isUnreadable(found.iterationId) &&
      state.clientsOfIteration(found.iterationId).size === 0;
    return { replaced: isReplaced ? [found] : [], client: {} };
  }

  /** @throws {LeatError} for one more reader than the iteration, which goes on, may have. */
  checkReaders(_subject: Subject, _request: OpenRequest): void {}

  /** How an iteration begins that a client has made. */
  beginning(_request: OpenRequest, _client: Admission["client"], random: Random): Beginning {
    return { seed: random.hex64() };
  }

  /** Has a worker list the splits, or whatever else is to be done before its tasks can work. */
  async list(_subject: Subject, ask: AskWorker, dataset: Dataset): Promise<Listing> {
    const { table } = await ask("listSplits", { dataset });
    return { bounds: packSplits(table) };
  }

  /** Why the iteration fails with a listing; undefined where another worker is to try. */
  listingFailed(_subject: Subject, { failure, isOfWorker }: ListingFailure): LeatError | undefined {
    return isOfWorker ? undefined : failure;
  }

  /** The seed of a task that is created: most share that of the iteration. */
  seedForTask({ seed }: Iteration, _random: Random): string {
    return seed;
  }

  /** Whether a request for a split can be answered now; else it waits. */
  isSplitReady(
    { iteration: { splits, error } }: Subject,
    _request: SplitRequest,
    _windowSplits: number,
  ): boolean {
    return !this.needsSplits || splits !== null || error !== null;
  }

  /** Hands out a split; see `DispatcherProtocol.getSplit`. */
  assignSplit(
    { state }: Transaction,
    { task, iteration }: TaskOfIteration,
    _request: SplitRequest,
    _windowSplits: number,
  ): SplitAnswer {
    const { processingMode } = state.jobs.get(iteration.jobId)!.parameters;
    throw invalid(
      `Task ${task.taskId} is sharded "${processingMode}", and is handed out no splits`,
    );
  }

  /** Whether a request for a piece of a save can be answered now; else it waits. */
  isWorkReady(_subject: Subject, _request: SaveRequest): boolean {
    return true;
  }

  /** Hands out a piece of a save; see `DispatcherProtocol.getSaveWork`. */
  assignWork(_turn: Transaction, { task }: TaskOfIteration, _request: SaveRequest): SaveAnswer {
    throw invalid(`Task ${task.taskId} asks for a piece of a save, and its job saves nothing`);
  }

  /** Whether there is something in the iteration for the worker to produce. */
  hasWorkFor(_subject: Subject, _worker: string): boolean {
    return true;
  }

  /** The worker's share of the iteration; undefined where workers have none of their own. */
  shardOf(_subject: Subject, _worker: string): Shard | undefined {
    return undefined;
  }

  /** Whether nothing more will come of the iteration. */
  isDone({ state, iteration: { iterationId, anyCompleted } }: Subject): boolean {
    return anyCompleted && state.tasksToComplete(iterationId) === 0;
  }

  /**
   * The piece of the iteration that a task's runner ran when it died: deaths are counted by piece. Null:
   * the pipeline as a whole.
   *
   * @param place What the task has said of it.
   */
  pieceOf(subject: Subject, { worker }: Task, _place: number | undefined): number | null {
    return this.shardOf(subject, worker)?.index ?? null;
  }

  /** Such a piece in words, as the beginning of `… "name of the job" was ended`. */
  namePiece(_piece: number | null): string {
    return "Job";
  }

  /** What clients are told of an error with which the iteration ends, on a worker. */
  failure(_subject: Subject, _worker: string, error: WireError): WireError {
    return error;
  }

  /** Why it gives a worker nothing, as a sentence; undefined where it does not leave that worker out. */
  whyNothingFor(_subject: Subject, _worker: string): string | undefined {
    return undefined;
  }

  /** Takes in what a client reports, and draws conclusions. @throws {LeatError} for what cannot be. */
  heard(_turn: Transaction, _client: Client, _report: HeartbeatRequest, _with: HeardWith): void {}

  /** Looks at an iteration whose tasks or clients have changed. */
  review(_turn: Transaction, _iteration: Iteration, _consumers: Consumers): void {}

  /** What a client is told beside what all are told. */
  newsFor(
    _subject: Subject,
    _client: Client,
    _report: HeartbeatRequest,
    _windowSplits: number,
  ): Partial<ClientNews> {
    return {};
  }

  /**
   * A sentence about what clients wait for although there are workers; null where they do not.
   *
   * @param windowSplits How far beyond what all readers have splits are handed out that have an order.
   */
  whyWaiting(_subject: Subject, _windowSplits: number): string | null {
    return null;
  }

  /** The iterations in which clients may have waited for a client that has come to this one, or left it. */
  concerned(_subject: Subject): readonly Iteration[] {
    return [];
  }

  /** A client that leaves wants the iteration to end. */
  cancel(_turn: Transaction, _iteration: Iteration, _client: Client): void {}

  /** What an iteration without clients does: in most modes it waits for some, until it is forgotten. */
  whenUnread(_iteration: Iteration): "waits" | "ends" | "goes on" {
    return "waits";
  }

  // How records change what a mode remembers. None of these draws anything or reads a clock.

  /** What it remembers of an iteration that begins. */
  begin(_record: RecordOf<"iteration_created">, _parameters: JobParameters): ModeState {
    return { shardsDone: [], rounds: noRounds(), ordered: null, saving: null };
  }

  /** What finds the tasks and consumers of its rounds, where clients read in rounds. */
  roundIndexFor(_iteration: Iteration): RoundIndex | undefined {
    return undefined;
  }

  /** The iteration is there. */
  iterationCreated(_tables: Tables, _iteration: Iteration): void {}

  /** A client has come. */
  clientOpened(_tables: Tables, _iteration: Iteration, _record: RecordOf<"client_opened">): void {}

  /** A client has gone. */
  clientReleased(
    _tables: Tables,
    _iteration: Iteration,
    _client: Client,
    _record: RecordOf<"client_released">,
  ): void {}

  /** A task has produced everything. */
  taskCompleted(_iteration: Iteration, _task: Task, _workers: readonly string[] | null): void {}

  /** A task has ended, with what it was at. */
  taskEnded(_iteration: Iteration, _task: Task): void {}

  /** What the description of the iteration has beside what all have. */
  describe(_subject: Subject, _tasks: readonly TaskDescription[]): Partial<IterationDescription> {
    return {};
  }

  /** How far its consumers are in their rounds, for people; undefined where they read in none. */
  describeRounds(
    _subject: Subject,
    _placeOf: (clientId: number) => ConsumerPlace | undefined,
  ): RoundsDescription | undefined {
    return undefined;
  }

  /** How many splits were handed out; undefined where each source has its own number. */
  handedOut(_iteration: Iteration): number | undefined {
    return undefined;
  }
}

/** The error for a request that means nothing in its mode. */
export function invalid(message: string): LeatError {
  return new LeatError("invalid_argument", message);
}

/** The error for readers that name the run that they belong to, where that means nothing. */
export function runIdElsewhere(): LeatError {
  return invalid(
    'A runId says which readers of a "DETERMINISTIC" job with a jobName were started together; leave it ' +
      "out elsewhere",
  );
}
