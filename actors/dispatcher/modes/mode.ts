/**
 * The decisions of a job's mode. Other code of the dispatcher never asks which mode it is. A mode
 * object is stateless: its data is in the dispatcher's state, and changes only when a record is
 * applied. docs/adding-a-mode.md lists what a new mode needs.
 */
import { LeatError, type WireError } from "../../../core/error.ts";
import type { Shard } from "../../../data/sharding/sharding_policy.ts";
import type { RequestOf } from "../../runtime/protocol.ts";
import type { Random } from "../../runtime/world.ts";
import type { Consumers } from "./consumers.ts";
import type { Client, Dataset, Iteration, Job, Task, TaskOfIteration } from "../state/entities.ts";
import { type ModeState, noRounds } from "./mode_state.ts";
import type { AskWorker, Listing, ListingFailure } from "../jobs/split_listings.ts";
import type { Quotas } from "../jobs/quotas.ts";
import type { DispatcherProtocol, JobParameters } from "../protocol.ts";
import type {
  ConsumerPosition,
  DispatcherDescription,
  RoundsDescription,
  TaskDescription,
} from "../protocol_figures.ts";
import type { ReaderNews, ReaderReport } from "../protocol_heartbeats.ts";
import type { RecordOf } from "../journal/records.ts";
import type { RoundIndex } from "./coordinated/round_index.ts";
import { checkIsNotNamedAsSave } from "./save/save_folder.ts";
import type { SaveAnswer, SaveRequest } from "./save/saving.ts";
import type { SplitAnswer, SplitRequest } from "./splits.ts";
import type { DispatcherState } from "../state/state.ts";
import type { Tables } from "../state/tables.ts";
import type { Transaction } from "../transaction.ts";

export type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;

/** The iteration that a mode is asked about, and the state that contains it. */
export interface Subject {
  readonly state: DispatcherState;
  readonly iteration: Iteration;
}

export interface JoinFacts {
  /** The dispatcher's list of workers, by name; empty if none is configured. */
  readonly listedWorkers: readonly string[];
  /** Number of elements; -1 if infinite, -2 if unknown. */
  readonly cardinality: number;
}

export interface JobFacts {
  /** Undefined if it does not exist yet. */
  readonly job: Job | undefined;
  /** The identity that owns the job, or will. */
  readonly owner: string;
  /** Whether a task of the iteration cannot continue, as far as its worker has reported. */
  readonly isUnreadable: (iterationId: number) => boolean;
}

export interface JoinDecision {
  /** The iterations to drop first: the client's own if that restarts, and those of an earlier run. */
  readonly replaced: readonly Iteration[];
  /** The mode's fields of the client's record. */
  readonly client: Partial<RecordOf<"client_opened">>;
}

/** The mode's fields of a new iteration's record. */
export type IterationStart = Pick<
  RecordOf<"iteration_created">,
  "seed" | "startAt" | "behind" | "run" | "pass"
>;

export type IterationDescription = DispatcherDescription["jobs"][number]["iterations"][number];

/** What the handling of a heartbeat needs besides the state. */
export interface ReportContext {
  readonly consumers: Consumers;
  /**
   * How long one of several consumers may fail to reach a task before the dispatcher replaces the
   * task, in ms.
   */
  readonly lostTaskTimeoutMs: number;
  readonly quotas: Quotas;
}

/** A mode. The default methods are what most modes do. */
export abstract class Mode {
  /** Whether only the dispatcher's list of workers serves its jobs, each with its own share. */
  readonly hasFixedWorkers: boolean = false;
  /** Whether the job's own policy assigns the shares. */
  readonly takesPolicy: boolean = false;
  /** Whether the splits of an iteration must be listed before its tasks can work. */
  readonly needsSplits: boolean = false;
  /** What a worker does before the tasks can work, for logs. */
  readonly preparation: string = "list splits";
  /** Whether the tasks of a failed iteration are ended; otherwise they end by themselves. */
  readonly endsFailedTasks: boolean = true;

  /**
   * The request with the job's final name; a save is named after its folder.
   * @throws {LeatError} if the client's `jobName` is reserved.
   */
  withName(request: OpenRequest): OpenRequest {
    checkIsNotNamedAsSave(request);
    return request;
  }

  /** @throws {LeatError} for a join request that the mode does not accept. */
  check({ parameters: { policy, ordered }, runId }: OpenRequest, _facts: JoinFacts): void {
    if ((policy !== undefined) !== this.takesPolicy) {
      throw invalid("A policy goes with processingMode CUSTOM, and with no other");
    }
    if (runId !== undefined) throw runIdElsewhere();
    if (ordered !== undefined) {
      throw invalid("An order of splits goes with processingMode DETERMINISTIC, and with no other");
    }
  }

  /** The error for parameters that differ from the job's; `has` and `asked` are in words. */
  disagreement({ name }: Job, has: string, asked: string, difference: string): LeatError {
    return invalid(
      `The job "${name}" exists with other parameters: it has ${has}; this client asks for ` +
        `${asked}.${difference} Use the same parameters, or another jobName`,
    );
  }

  /** Whether the iteration is over. The next client then gets a new one, even if others still read. */
  isOver(_iteration: Iteration): boolean {
    return false;
  }

  /**
   * Admits a client. By default an iteration restarts if it has no clients and one of its tasks
   * cannot continue, as the missing data may be there now.
   * @throws {LeatError} for a client that may not read.
   */
  admit(
    state: DispatcherState,
    { repetition }: OpenRequest,
    { job, isUnreadable }: JobFacts,
  ): JoinDecision {
    const found = job === undefined ? undefined : state.iterationOf(job.jobId, repetition);
    const isReplaced = found !== undefined && isUnreadable(found.iterationId) &&
      state.clientsOfIteration(found.iterationId).size === 0;
    return { replaced: isReplaced ? [found] : [], client: {} };
  }

  /** @throws {LeatError} if the running iteration cannot take one more reader. */
  checkReaders(_subject: Subject, _request: OpenRequest): void {}

  /** The initial fields of an iteration that a client creates. */
  initialFields(
    _request: OpenRequest,
    _client: JoinDecision["client"],
    { random }: Transaction,
  ): IterationStart {
    return { seed: random.hex64() };
  }

  /** Asks a worker to list the splits, and to prepare what else the tasks need. */
  async list({ state, iteration }: Subject, ask: AskWorker, dataset: Dataset): Promise<Listing> {
    const { owner } = state.jobs.get(iteration.jobId)!;
    const { bounds } = await ask("listSplits", { dataset, owner });
    // Copies: views would keep the memory of the whole message.
    return { bounds: bounds.map((runs) => runs.slice()) };
  }

  /** The error with which a failed listing fails the iteration; undefined: try another worker. */
  listingFailed(_subject: Subject, { failure, isOfWorker }: ListingFailure): LeatError | undefined {
    return isOfWorker ? undefined : failure;
  }

  /** The seed of a new task; by default that of the iteration. */
  seedForTask({ seed }: Iteration, _random: Random): string {
    return seed;
  }

  /** Whether a request for a split can be answered now; otherwise it waits. */
  isSplitReady(
    { iteration: { splits, error } }: Subject,
    _request: SplitRequest,
    _windowSplits: number,
  ): boolean {
    return !this.needsSplits || splits !== null || error !== null;
  }

  /** Assigns a split; see `DispatcherProtocol.getSplit`. */
  assignSplit(
    { state }: Transaction,
    { task, iteration }: TaskOfIteration,
    _request: SplitRequest,
    _windowSplits: number,
  ): SplitAnswer {
    const { processingMode } = state.jobs.get(iteration.jobId)!.parameters;
    throw invalid(
      `Task ${task.taskId} has processingMode "${processingMode}", which assigns no splits`,
    );
  }

  /** Whether a request for save work can be answered now; otherwise it waits. */
  isWorkReady(_subject: Subject, _request: SaveRequest): boolean {
    return true;
  }

  /** Assigns save work; see `DispatcherProtocol.getSaveWork`. */
  assignWork(_tx: Transaction, { task }: TaskOfIteration, _request: SaveRequest): SaveAnswer {
    throw invalid(`Task ${task.taskId} asks for a piece of a save, and its job saves nothing`);
  }

  /** Whether the iteration has something for the worker to produce. */
  hasWorkFor(_subject: Subject, _worker: string): boolean {
    return true;
  }

  /** The worker's share of the iteration; undefined in modes without shares. */
  shardOf(_subject: Subject, _worker: string): Shard | undefined {
    return undefined;
  }

  /** Whether the iteration will produce nothing more. */
  isDone({ state, iteration: { iterationId, anyCompleted } }: Subject): boolean {
    return anyCompleted && state.tasksToComplete(iterationId) === 0;
  }

  /**
   * What a runner worked on when it died: the number of a split or share, or null for the whole pass.
   * @param _position What the task reported.
   */
  pieceOf(subject: Subject, { worker }: Task, _position: number | undefined): number | null {
    return this.shardOf(subject, worker)?.index ?? null;
  }

  /**
   * The beginning of an error that names the piece, for example `Split 3 of job`. The error
   * continues with the name of the job.
   */
  namePiece(_piece: number | null): string {
    return "Job";
  }

  /** The error for clients when a worker's error ends the iteration. */
  failure(_subject: Subject, _worker: string, error: WireError): WireError {
    return error;
  }

  /** Why the mode gives a worker nothing, as a sentence; undefined if it includes the worker. */
  whyNothingFor(_subject: Subject, _worker: string): string | undefined {
    return undefined;
  }

  /** Handles a client's report. @throws {LeatError} for an impossible report. */
  handleReport(
    _tx: Transaction,
    _client: Client,
    _report: ReaderReport | undefined,
    _with: ReportContext,
  ): void {}

  /** Called when tasks or clients of the iteration have changed. Coordinated reads plan their rounds here. */
  review(_tx: Transaction, _iteration: Iteration, _consumers: Consumers): void {}

  /** The mode's fields of a heartbeat answer. */
  newsFor(
    _subject: Subject,
    _client: Client,
    _report: ReaderReport | undefined,
    _windowSplits: number,
  ): ReaderNews | undefined {
    return undefined;
  }

  /** What clients wait for although there are workers, as a sentence; null if they do not wait. */
  whyWaiting(_subject: Subject, _windowSplits: number): string | null {
    return null;
  }

  /**
   * When a client joins or leaves this iteration: the other iterations that may have waited for that.
   * Their waiting requests are tried again.
   */
  othersWaiting(
    _subject: Subject,
    _released?: RecordOf<"client_released">,
  ): readonly Iteration[] {
    return [];
  }

  /** A leaving client requests the end of the iteration. */
  cancel(_tx: Transaction, _iteration: Iteration): void {}

  /** What an iteration without clients does; in most modes it waits until garbage-collected. */
  whenUnread(_iteration: Iteration): "waits" | "ends" | "continues" {
    return "waits";
  }

  /** The progress of an iteration that continues without clients, as a sentence; null for others. */
  progress(_subject: Subject): string | null {
    return null;
  }

  // How records change the state of a mode, without random numbers or clocks.

  /** The mode's state of a new iteration. */
  initialState(_record: RecordOf<"iteration_created">, _parameters: JobParameters): ModeState {
    return { shardsDone: [], rounds: noRounds(), ordered: null, saving: null };
  }

  /** The index of tasks and consumers by rounds, in modes that read in rounds. */
  roundIndexFor(_iteration: Iteration): RoundIndex | undefined {
    return undefined;
  }

  iterationCreated(_tables: Tables, _iteration: Iteration): void {}

  clientOpened(_tables: Tables, _iteration: Iteration, _record: RecordOf<"client_opened">): void {}

  clientReleased(
    _tables: Tables,
    _iteration: Iteration,
    _client: Client,
    _record: RecordOf<"client_released">,
  ): void {}

  taskCompleted(_iteration: Iteration, _task: Task, _workers: readonly string[] | null): void {}

  taskEnded(_iteration: Iteration, _task: Task): void {}

  /** The mode's fields of the iteration's description. */
  describe(_subject: Subject, _tasks: readonly TaskDescription[]): Partial<IterationDescription> {
    return {};
  }

  /** The consumers' positions in their rounds, for people; undefined in modes without rounds. */
  describeRounds(
    _subject: Subject,
    _positionOf: (clientId: number) => ConsumerPosition | undefined,
  ): RoundsDescription | undefined {
    return undefined;
  }

  /** How many splits were assigned; undefined if each source is counted separately. */
  assignedCount(_iteration: Iteration): number | undefined {
    return undefined;
  }
}

/** The error for a request that has no meaning in its mode. */
export function invalid(message: string): LeatError {
  return new LeatError("invalid_argument", message);
}

/** The error for a `runId` in a mode without runs. */
export function runIdElsewhere(): LeatError {
  return invalid(
    'A runId says which readers of a "DETERMINISTIC" job with a jobName were started together; leave it ' +
      "out elsewhere",
  );
}
