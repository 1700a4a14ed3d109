/**
 * The client actor: a training process runs one to read from the service. It joins an iteration of
 * a job, sends heartbeats to the dispatcher, learns from the answers which tasks to read, and reads
 * them directly from the workers.
 */
import { LeatError } from "../../core/error.ts";
import type { KnownReader } from "../../data/service/last_readers.ts";
import type { ReadingTask } from "../../data/service/reading_task.ts";
import type { ServiceStats } from "../../data/iterators/stats.ts";
import { ShardingPolicy } from "../../data/sharding/sharding_policy.ts";
import {
  type DatasetDefinition,
  type DispatcherProtocol,
  type JobParameters,
  pauseWithin,
  type TaskSource,
} from "../dispatcher/protocol.ts";
import { dispatcherAnswers } from "../dispatcher/protocol_check.ts";
import type { ClientFigures, ReadFigures } from "../dispatcher/protocol_figures.ts";
import type { Actor, ActorContext } from "../runtime/actor.ts";
import type { FencedRef, Ref } from "../runtime/ref.ts";
import { Sleep } from "../runtime/timers.ts";
import type { Feed } from "./feed.ts";
import { ATTEMPT_MS, FIRST_ANSWER_TIMEOUT_MS, firstAnswer, joinIteration } from "./first_answer.ts";
import { answerIfArrived } from "./heartbeats.ts";
import { UnorderedReader } from "./readers/unordered_reader.ts";
import type { Numbering } from "./readers/numbering.ts";
import { OrderedReader } from "./readers/ordered_reader.ts";
import { ignored } from "../runtime/checks.ts";
import { elementGiverChecks } from "../worker/protocol_check.ts";
import { elementGiverAccess, elementReaderAccess } from "../worker/protocol_access.ts";
import type { ClientProtocol } from "./protocol.ts";
import type {
  HeartbeatNews,
  Reader,
  ReaderDependencies,
  ReadTotals,
  TaskChanges,
} from "./readers/reader.ts";
import { RoundReader } from "./readers/round_reader.ts";
import type { ConsumerMeter } from "./consumer_meter.ts";
import { UnreadTasks } from "./unreached.ts";
import { WaitLog } from "./wait_log.ts";
import { definedFields } from "../../core/tree.ts";

/** Time limit for the release request, and for a join in flight before it, in ms. */
const RELEASE_TIMEOUT_MS = 1_000;

/** A heartbeat reports on at most this many tasks. */
const READS_REPORTED_MAX = 64;

export interface ClientOptions {
  readonly dispatcher: Ref<DispatcherProtocol>;
  /** The pipeline, or the id under which it was registered. */
  readonly dataset:
    | Pick<DatasetDefinition, "graph" | "fingerprint" | "cardinality" | "compression">
    | { readonly datasetId: string };
  readonly parameters: Omit<JobParameters, "datasetId">;
  readonly jobName?: string;
  readonly repetition: number;
  readonly consumerIndex?: number;
  readonly trainerId?: string;
  /** The task of a worker whose pipeline reads through this client. Left out: a program reads. */
  readonly forTask?: ReadingTask | undefined;
  /** The name of this client's process. Workers of the same process are local. */
  readonly process?: string;
  /** Whether a node is reached over a network. Default: no node is. */
  readonly isFar?: (node: string) => boolean;
  /** DETERMINISTIC: where a restored reader begins. */
  readonly ordered?: {
    /** The position in the order of splits. */
    readonly startAt?: number;
    /** Earlier splits, ascending, whose left-over rows are needed again. */
    readonly behind?: readonly number[];
    /** The digest of the table of splits that the position refers to. Another table is refused. */
    readonly expectedDigest?: string;
    /** With consumers: where element numbers begin. Left out: all elements are wanted. */
    readonly numbering?: Numbering;
    /** Identifies the stream. All its chains and readers use the same name. */
    readonly stream?: string;
    /** Identifies the restore of a restored reader; the same for all chains. */
    readonly restoration?: string;
    /** Identifies the run: the same for readers started together. */
    readonly runId?: string;
    /** The number of the dataset's iterator, if the repetition is one of its passes. Default 0. */
    readonly iterator?: number;
    /** The identity under which the reader last read the stream, in this epoch or an earlier one. */
    readonly lastReader?: KnownReader;
    /** Receives the identity under which the reader reads from now on. */
    readonly onJoined?: (reader: KnownReader) => void;
    /** Receives the digest of the table of splits. */
    readonly onTable?: (digest: string) => void;
  };
  /** Limit of requests in flight plus buffered elements. The default depends on the mode. */
  readonly maxOutstandingRequests?: number;
  /** Requests pause while more bytes than this wait for the training loop. Default 256 MiB. */
  readonly bufferBytesMax?: number;
  /** Time between heartbeats, in ms; at most a third of the client timeout. Default 1,000. */
  readonly refreshMs?: number;
  /** Time limit for the dispatcher's first answer, in ms. Default 10,000. */
  readonly firstAnswerTimeoutMs?: number;
  /** How long one element request stays open before it is repeated, in ms. Default 30,000. */
  readonly requestTimeoutMs?: number;
}

/** Makes the client actor, which feeds `feed` until it is stopped. */
export function createClient(
  context: ActorContext<ClientProtocol>,
  options: ClientOptions,
  feed: Feed,
): Actor<ClientProtocol> {
  const client = new Client(context, options, feed);
  return {
    handlers: {
      wake: () => {
        client.wake();
        return null;
      },
      askAgain: (_, { source }) => client.askAgain(source),
      readSource: ({ split, from }) => feed.readSource(split, from),
    },
    // `wake` lists no role: this node dialled the dispatcher, and so grants it the admin role.
    access: { wake: [], ...elementReaderAccess, ...elementGiverAccess },
    checks: { wake: ignored, askAgain: ignored, ...elementGiverChecks },
    start: () => context.run(() => client.run()),
    stop: (error) => client.stop(error),
  };
}

function readerFor(deps: ReaderDependencies): Reader {
  const { processingMode, numConsumers } = deps.options.parameters;
  if (processingMode === ShardingPolicy.DETERMINISTIC) return new OrderedReader(deps);
  return numConsumers === undefined ? new UnorderedReader(deps) : new RoundReader(deps);
}

class Client {
  readonly #context: ActorContext;
  readonly #options: ClientOptions;
  readonly #feed: Feed;
  readonly #reader: Reader;
  readonly #meter: ConsumerMeter;
  readonly #totals: ReadTotals = { unpackingMs: 0, wireBytes: 0 };
  /** The newest list of tasks, and its version. */
  readonly #tasks = new Map<number, TaskSource>();
  #taskList: string | undefined;
  /** Known to this client alone. It authenticates requests to the dispatcher about this client. */
  readonly #secret: string;
  readonly #waitLog = new WaitLog();
  readonly #unread = new UnreadTasks();
  /** How many elements the training loop had at the last heartbeat. */
  #elementsBefore = 0;
  #joining: Promise<number> | undefined;
  /** The pause before the next heartbeat. */
  readonly #pause = new Sleep();
  #refreshAsked = false;
  /** The dispatcher's timeout for a client, in ms; undefined until the dispatcher sends it. */
  #timeoutMs: number | undefined;

  constructor(context: ActorContext, options: ClientOptions, feed: Feed) {
    this.#context = context;
    this.#secret = context.random.hex64() + context.random.hex64();
    this.#options = options;
    this.#feed = feed;
    const refresh = () => this.#refresh();
    const deps = {
      ...{ context, options, feed, refresh },
      totals: this.#totals,
      unread: this.#unread,
    };
    this.#reader = readerFor(deps);
    this.#meter = feed.measure(() => context.world.nowMs());
    feed.onTaken = () => this.#reader.pump();
    feed.stats = () => this.#figures();
  }

  async run(): Promise<void> {
    const { refreshMs = 1_000 } = this.#options;
    try {
      this.#joining = this.#join();
      const clientId = await this.#joining;
      this.#reader.joined(clientId);
      while (this.#isRead && !this.#context.signal.aborted) {
        this.#refreshAsked = false;
        await this.#heartbeat(clientId);
        if (!this.#isRead || this.#refreshAsked) continue;
        await this.#pause.begin(this.#context, pauseWithin(refreshMs, this.#timeoutMs));
      }
    } catch (error) {
      const failure = LeatError.from(error);
      this.#feed.fail(failure);
      this.#reader.stop();
      if (failure.code === "cancelled") throw failure;
    }
  }

  /** Whether the training loop may still take elements. A client that is silent meanwhile times out. */
  get #isRead(): boolean {
    return !this.#feed.closed || this.#feed.length > 0;
  }

  wake(): void {
    // If a hint is lost, the next regular heartbeat is enough: correctness must not need hints.
    if (!this.#context.world.fault("client.miss_news")) this.#refresh();
  }

  /** Handles `ElementReaderProtocol.askAgain` of a draining source. */
  askAgain(source: FencedRef): { readonly acknowledged?: number } {
    const acknowledged = this.#reader.askAgain?.(source);
    return acknowledged === undefined ? {} : { acknowledged };
  }

  /** @param error Why this actor died, if it did. */
  async stop(error: LeatError | undefined): Promise<void> {
    this.#feed.fail(
      error ?? new LeatError(
        "cancelled",
        "The iterator was disposed, or the cluster it read from was closed",
      ),
    );
    this.#reader.stop();
    const clientId = await this.#joined();
    if (clientId === undefined) return;
    // If this request is lost, the dispatcher releases the client after the timeout.
    const { nextRound } = this.#reader;
    const { ordered, numConsumers } = this.#options.parameters;
    const isOneOfSeveral = ordered !== undefined && numConsumers !== undefined;
    const request = {
      ...{ clientId, secret: this.#secret, figures: this.#figures() },
      ...(nextRound === undefined ? {} : { nextRound }),
      ...(isOneOfSeveral && !this.#feed.goesOn ? { leaves: true as const } : {}),
    };
    await this.#context.ask(this.#options.dispatcher, "releaseClient", request, {
      timeoutMs: RELEASE_TIMEOUT_MS,
    }).catch(() => {});
  }

  /**
   * The client's id, once it has joined. Stopping needs the id to release the client. Undefined if
   * the client has not joined, or if the dispatcher is unreachable or too slow.
   */
  async #joined(): Promise<number | undefined> {
    const gaveUp = Promise.withResolvers<undefined>();
    const timer = this.#context.world.timer(RELEASE_TIMEOUT_MS, () => gaveUp.resolve(undefined));
    this.#context.ask(this.#options.dispatcher, "hello", null, { timeoutMs: RELEASE_TIMEOUT_MS })
      .catch(() => gaveUp.resolve(undefined));
    try {
      return await Promise.race([this.#joining?.catch(() => undefined), gaveUp.promise]);
    } finally {
      timer.cancel();
    }
  }

  async #join(): Promise<number> {
    const { dispatcher, dataset, parameters, jobName, repetition, consumerIndex } = this.#options;
    const { process, forTask } = this.#options;
    const { startAt, behind = [], onJoined } = this.#options.ordered ?? {};
    const { stream, restoration, runId, iterator, lastReader } = this.#options.ordered ?? {};
    const { firstAnswerTimeoutMs = FIRST_ANSWER_TIMEOUT_MS } = this.#options;
    const datasetId = "datasetId" in dataset
      ? dataset.datasetId
      : dispatcherAnswers.registerDataset(
        await firstAnswer(dispatcher, firstAnswerTimeoutMs, (askOptions) =>
          this.#context.ask(
            dispatcher,
            "registerDataset",
            { ...dataset, transient: true, ...definedFields({ forTask }) },
            askOptions,
          )),
        dispatcher.node,
      ).datasetId;
    const request = {
      requestId: this.#context.random.hex64(),
      secret: this.#secret,
      ...(jobName === undefined ? {} : { jobName }),
      parameters: { ...parameters, datasetId },
      repetition,
      ...definedFields({ consumerIndex, process, forTask, startAt }),
      ...(behind.length === 0 ? {} : { behind }),
      ...definedFields({ stream, restoration, runId, iterator, lastReader }),
    };
    const joined = await joinIteration(
      request,
      (request) => {
        // A client that is being stopped must not take a stream over.
        if (this.#feed.closed) throw new LeatError("cancelled", "The iterator was disposed");
        return firstAnswer(
          dispatcher,
          firstAnswerTimeoutMs,
          (askOptions) => this.#context.ask(dispatcher, "openIteration", request, askOptions),
        );
      },
    );
    const { clientId, clusterId, isContinued } = dispatcherAnswers
      .openIteration(joined, dispatcher.node);
    onJoined?.({ clusterId, clientId });
    if (isContinued === true) this.#warnOfRest();
    return clientId;
  }

  /**
   * Logs that the first epoch is not whole, as when a trainer starts again under the name of its job.
   * Later epochs, and those of several consumers, are continued on purpose.
   */
  #warnOfRest(): void {
    const { dispatcher, jobName, repetition, parameters, forTask, ordered } = this.#options;
    const { sharing, numConsumers } = parameters;
    if (repetition > 0 || sharing || numConsumers !== undefined) return;
    if (forTask !== undefined || ordered !== undefined) return;
    this.#context.world.log(
      "warn",
      `Job "${jobName}" of the dispatcher at ${dispatcher.node} continues an epoch that a former ` +
        "client has read: elements that it was given do not come again, and none come if the epoch " +
        "has ended. To begin at the first element, use a new jobName at each start of the trainer, " +
        "or none.",
    );
  }

  async #heartbeat(clientId: number): Promise<void> {
    const { dispatcher, refreshMs = 1_000 } = this.#options;
    const taskList = this.#taskList;
    const report = this.#reader.report();
    const request = {
      clientId,
      secret: this.#secret,
      ...definedFields({ report, taskList }),
      figures: { ...this.#figures(), ...definedFields({ unread: this.#unreadNow() }) },
    };
    const arrived = await answerIfArrived(
      this.#context.ask(dispatcher, "clientHeartbeat", request, {
        timeoutMs: Math.max(refreshMs, 2 * ATTEMPT_MS),
        attemptMs: ATTEMPT_MS,
      }),
    );
    if (arrived === undefined) return this.#noteNoAnswer();
    const answer = dispatcherAnswers.clientHeartbeat(arrived, dispatcher.node);
    this.#timeoutMs = answer.timeoutMs;
    if (answer.error !== undefined) throw LeatError.fromWire(answer.error);
    // A client that has everything, or was stopped meanwhile, must open no tasks.
    if (this.#feed.closed) return;
    const unread = this.#unreadNow() ?? this.#unread.whyAllEnded(this.#tasks);
    this.#noteStarvation(answer.starvation ?? this.#ifStarved(unread));
    this.#reader.update(answer, this.#changesBy(answer));
  }

  /** How the answer changes the list of tasks. The answer holds the whole list or a difference. */
  #changesBy(news: HeartbeatNews): TaskChanges {
    const { tasks } = news;
    this.#taskList = news.taskList;
    const removed: number[] = [];
    const added: TaskSource[] = [];
    for (const taskId of news.kind === "changes" ? news.endedTasks : this.#missingFrom(tasks)) {
      if (this.#tasks.delete(taskId)) removed.push(taskId);
    }
    for (const task of tasks) {
      const known = this.#tasks.get(task.taskId);
      if (known?.source.incarnation === task.source.incarnation) continue;
      if (known !== undefined) removed.push(task.taskId);
      this.#tasks.set(task.taskId, task);
      added.push(task);
    }
    return { removed, added };
  }

  #missingFrom(tasks: readonly TaskSource[]): number[] {
    const listed = new Set(tasks.map(({ taskId }) => taskId));
    return [...this.#tasks.keys()].filter((taskId) => !listed.has(taskId));
  }

  /** A client that has tasks continues without the dispatcher. */
  #noteNoAnswer(): void {
    if (this.#feed.closed) return;
    const reasons = ["The dispatcher does not answer, and is asked again.", this.#unreadNow()];
    this.#noteStarvation(this.#ifStarved(reasons.filter((reason) => reason).join(" ")));
  }

  /** The reason, if the training loop has got nothing since the heartbeat before, and waits. */
  #ifStarved(reason: string | undefined): string | undefined {
    const { elements } = this.#meter;
    const hasProgress = elements > this.#elementsBefore || !this.#feed.isWaitedFor;
    this.#elementsBefore = elements;
    return hasProgress ? undefined : reason;
  }

  #unreadNow(): string | undefined {
    return this.#unread.why(this.#tasks, this.#context.world.nowMs());
  }

  #noteStarvation(starvation: string | undefined): void {
    const { dispatcher, jobName } = this.#options;
    const { world } = this.#context;
    const message = this.#waitLog.due(starvation, world.nowMs());
    if (message === undefined) return;
    const job = jobName === undefined ? "A job" : `Job "${jobName}"`;
    world.log(
      "warn",
      `${job} of the dispatcher at ${dispatcher.node} makes no progress. ${message}`,
    );
  }

  #figures(): ClientFigures & ServiceStats {
    const { inFlight, earlyBytes, orderFigures } = this.#reader;
    const bufferedBytes = this.#feed.bytes + earlyBytes;
    const atMs = this.#context.world.nowMs();
    return {
      atMs,
      ...this.#meter.figures,
      ...this.#feed.offload(),
      inFlight,
      bufferedBytes,
      ...orderFigures,
      ...this.#readFigures(),
    };
  }

  #readFigures(): Pick<ServiceStats, "unpackingMs" | "wireBytes"> & { reads: ReadFigures[] } {
    const { unpackingMs, wireBytes } = this.#totals;
    return {
      unpackingMs,
      wireBytes,
      reads: [...Iterator.from(this.#reader.tasks).take(READS_REPORTED_MAX)],
    };
  }

  /** Sends a heartbeat now, because its answer is expected to bring changes. */
  #refresh(): void {
    this.#refreshAsked = true;
    this.#pause.wake();
  }
}
