/**
 * The client actor: what a training process runs to read from the service. It joins an iteration of
 * a job, keeps itself alive at the dispatcher, learns there which tasks to read, and reads them
 * directly from the workers.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { ReaderId } from "../../data/last_readers.ts";
import type { ServiceStats } from "../../data/stats.ts";
import { ShardingPolicy } from "../../data/sharding_policy.ts";
import {
  type DatasetDefinition,
  type DispatcherProtocol,
  type JobParameters,
  pauseWithin,
  type TaskSource,
} from "../dispatcher/protocol.ts";
import type { ClientFigures, ReadFigures } from "../dispatcher/protocol_figures.ts";
import type { Actor, ActorContext } from "../runtime/actor.ts";
import type { FencedRef, Ref } from "../runtime/ref.ts";
import type { Feed } from "./feed.ts";
import { ATTEMPT_MS, FIRST_ANSWER_TIMEOUT_MS, firstAnswer } from "./first_answer.ts";
import { FirstComeReader } from "./first_come.ts";
import { joinIteration } from "./joining.ts";
import type { Numbering } from "./numbering.ts";
import { OrderedReader } from "./ordered.ts";
import { elementReaderAccess } from "../worker/protocol_access.ts";
import type { ClientProtocol } from "./protocol.ts";
import type {
  HeartbeatNews,
  Reader,
  ReaderSurroundings,
  ReadTotals,
  TaskChanges,
} from "./reader.ts";
import { RoundReader } from "./rounds.ts";
import type { TakeMeter } from "./take_meter.ts";
import { WaitLog } from "./wait_log.ts";

/** How long saying good-bye may take, in ms, and before it an answer to joining. */
const RELEASE_TIMEOUT_MS = 1_000;

/** Tasks that the dispatcher is told about, at most. */
const READS_TOLD_MAX = 64;

/** How a client is set up. */
export interface ClientOptions {
  readonly dispatcher: Ref<DispatcherProtocol>;
  /** The pipeline, or the id under which it was registered before. */
  readonly dataset:
    | Pick<DatasetDefinition, "graph" | "fingerprint" | "cardinality" | "compression">
    | { readonly datasetId: string };
  readonly parameters: Omit<JobParameters, "datasetId">;
  readonly jobName?: string;
  readonly repetition: number;
  readonly consumerIndex?: number;
  readonly trainerId?: string;
  /** The process that reads: workers of the same one are local to it. */
  readonly process?: string;
  /** Whether a network lies between here and that node. Default: nowhere. */
  readonly isFar?: (node: string) => boolean;
  /** DETERMINISTIC: where to begin, for a reader that was restored. */
  readonly ordered?: {
    /** The place in the order of splits. */
    readonly startAt?: number;
    /** Splits before it of which rows are needed once more, ascending. */
    readonly behind?: readonly number[];
    /** The digest of the table of splits that the place is in; another one is refused. */
    readonly expectedDigest?: string;
    /** With consumers: what the numbers of elements follow from. Left out: all of them are wanted. */
    readonly numbering?: Numbering;
    /** Names the stream in all its parts, as all who read it do. */
    readonly stream?: string;
    /** Of a reader that was restored: names that, the same in all parts. */
    readonly restoration?: string;
    /** Names those that were started together with its reader. */
    readonly runId?: string;
    /** As whom its reader has read the stream last, in this epoch or another one. */
    readonly lastReader?: ReaderId;
    /** Told as whom it does from now on. */
    readonly onJoined?: (reader: ReaderId) => void;
    /** Told the digest of the table. */
    readonly onTable?: (digest: string) => void;
  };
  /** Requests in flight and elements waiting, together. Default: as many as keep answers coming. */
  readonly maxOutstandingRequests?: number;
  /** Bytes waiting for the training loop beyond which nothing more is asked for. Default 256 MiB. */
  readonly bufferBytesMax?: number;
  /**
   * Time between heartbeats, in ms; less where the dispatcher releases silent clients sooner. Default
   * 1,000. News travels at once whatever this is.
   */
  readonly refreshMs?: number;
  /** How long the first answer of the dispatcher may take, in ms. Default 10,000. */
  readonly firstAnswerTimeoutMs?: number;
  /** How long one request for an element may stay open before it is asked again, in ms. Default 30,000. */
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
    },
    // The dispatcher is an admin to who has dialled it.
    access: { wake: [], ...elementReaderAccess },
    start: () => context.run(() => client.run()),
    stop: () => client.stop(),
  };
}

function readerFor(surroundings: ReaderSurroundings): Reader {
  const { processingMode, numConsumers } = surroundings.options.parameters;
  if (processingMode === ShardingPolicy.DETERMINISTIC) return new OrderedReader(surroundings);
  return numConsumers === undefined
    ? new FirstComeReader(surroundings)
    : new RoundReader(surroundings);
}

class Client {
  readonly #context: ActorContext;
  readonly #options: ClientOptions;
  readonly #feed: Feed;
  readonly #reader: Reader;
  readonly #meter: TakeMeter;
  readonly #totals: ReadTotals = { unpackingMs: 0, wireBytes: 0 };
  /** The newest list of tasks, and its name. */
  readonly #tasks = new Map<number, TaskSource>();
  #taskList: string | undefined;
  /** What only this client knows, and presents with whatever it asks the dispatcher of itself. */
  readonly #secret: string;
  readonly #waitLog = new WaitLog();
  #joining: Promise<number> | undefined;
  #refreshNow: () => void = () => {};
  #refreshAsked = false;
  /** After how much silence, in ms, the dispatcher may release it; undefined before it has said so. */
  #timeoutMs: number | undefined;

  constructor(context: ActorContext, options: ClientOptions, feed: Feed) {
    this.#context = context;
    this.#secret = context.random.hex64() + context.random.hex64();
    this.#options = options;
    this.#feed = feed;
    const refresh = () => this.#refresh();
    const surroundings = { context, options, feed, refresh, totals: this.#totals };
    this.#reader = readerFor(surroundings);
    this.#meter = feed.measure(() => context.world.nowMs());
    feed.onTaken = () => this.#reader.pump();
    feed.stats = () => this.#figures();
  }

  async run(): Promise<void> {
    try {
      this.#joining = this.#join();
      const clientId = await this.#joining;
      this.#reader.joined(clientId);
      while (!this.#feed.closed && !this.#context.signal.aborted) {
        this.#refreshAsked = false;
        await this.#heartbeat(clientId);
        if (!this.#feed.closed && !this.#refreshAsked) await this.#pause();
      }
    } catch (error) {
      const failure = LeatError.from(error);
      this.#feed.fail(failure);
      this.#reader.stop();
      if (failure.code === "cancelled") throw failure;
    }
  }

  wake(): void {
    // News that is missed waits for the next regular heartbeat; nothing may rest on its being heard.
    if (!this.#context.world.fault("client.miss_news")) this.#refresh();
  }

  /** A source that drains would else wait until what it gave in vain is asked for again by itself. */
  askAgain(source: FencedRef): { readonly acknowledged?: number } {
    const acknowledged = this.#reader.askAgain?.(source);
    return acknowledged === undefined ? {} : { acknowledged };
  }

  async stop(): Promise<void> {
    this.#feed.fail(
      new LeatError(
        "cancelled",
        "The iterator was disposed, or the cluster it read from was closed",
      ),
    );
    this.#reader.stop();
    const clientId = await this.#joined();
    if (clientId === undefined) return;
    // The dispatcher finds out by itself when it does not hear of a client any more.
    const request = { clientId, secret: this.#secret };
    await this.#context.ask(this.#options.dispatcher, "releaseClient", request, {
      timeoutMs: RELEASE_TIMEOUT_MS,
    }).catch(() => {});
  }

  /**
   * The client's id. One that is stopped while it joins waits for it, or nobody could release it; but
   * not for a dispatcher that is not there.
   */
  async #joined(): Promise<number | undefined> {
    const late = Promise.withResolvers<undefined>();
    const timer = this.#context.world.timer(RELEASE_TIMEOUT_MS, () => late.resolve(undefined));
    this.#context.ask(this.#options.dispatcher, "hello", null, { timeoutMs: RELEASE_TIMEOUT_MS })
      .catch(() => late.resolve(undefined));
    try {
      return await Promise.race([this.#joining?.catch(() => undefined), late.promise]);
    } finally {
      timer.cancel();
    }
  }

  async #join(): Promise<number> {
    const { dispatcher, dataset, parameters, jobName, repetition, consumerIndex } = this.#options;
    const { process } = this.#options;
    const { startAt, behind = [], onJoined } = this.#options.ordered ?? {};
    const { stream, restoration, runId, lastReader } = this.#options.ordered ?? {};
    const { firstAnswerTimeoutMs = FIRST_ANSWER_TIMEOUT_MS } = this.#options;
    const datasetId = "datasetId" in dataset
      ? dataset.datasetId
      : (await firstAnswer(dispatcher, firstAnswerTimeoutMs, (patience) =>
        this.#context.ask(
          dispatcher,
          "registerDataset",
          { ...dataset, transient: true },
          patience,
        )))
        .datasetId;
    const request = {
      requestId: this.#context.random.hex64(),
      secret: this.#secret,
      ...(jobName === undefined ? {} : { jobName }),
      parameters: { ...parameters, datasetId },
      repetition,
      ...(consumerIndex === undefined ? {} : { consumerIndex }),
      ...(process === undefined ? {} : { process }),
      ...(startAt === undefined ? {} : { startAt }),
      ...(behind.length === 0 ? {} : { behind }),
      ...(stream === undefined ? {} : { stream }),
      ...(restoration === undefined ? {} : { restoration }),
      ...(runId === undefined ? {} : { runId }),
      ...(lastReader === undefined ? {} : { lastReader }),
    };
    const { clientId, clusterId } = await joinIteration(
      request,
      (request) => {
        // One that is being stopped takes nothing over any more.
        if (this.#feed.closed) throw new LeatError("cancelled", "The iterator was disposed");
        return firstAnswer(
          dispatcher,
          firstAnswerTimeoutMs,
          (patience) => this.#context.ask(dispatcher, "openIteration", request, patience),
        );
      },
    );
    onJoined?.({ clusterId, clientId });
    return clientId;
  }

  async #heartbeat(clientId: number): Promise<void> {
    const { dispatcher, refreshMs = 1_000 } = this.#options;
    const taskList = this.#taskList;
    const request = {
      clientId,
      secret: this.#secret,
      ...this.#reader.report(),
      ...(taskList === undefined ? {} : { taskList }),
      figures: this.#figures(),
    };
    try {
      const answer = await this.#context.ask(dispatcher, "clientHeartbeat", request, {
        timeoutMs: Math.max(refreshMs, 2 * ATTEMPT_MS),
        attemptMs: ATTEMPT_MS,
      });
      this.#timeoutMs = answer.timeoutMs;
      if (answer.error !== undefined) throw LeatError.fromWire(answer.error);
      this.#noteUnserved(answer.unserved);
      // One that has been stopped meanwhile would open its tasks again, and nobody would close them.
      if (!this.#feed.closed) this.#reader.learn(answer, this.#changesBy(answer));
    } catch (error) {
      const failure = LeatError.from(error);
      // A client that has tasks goes on without a dispatcher.
      if (failure.code !== "unavailable" && failure.code !== "deadline_exceeded") throw failure;
    }
  }

  /** How the answer changes the list of tasks, which it tells whole or in part. */
  #changesBy({ tasks, taskList, endedTasks }: HeartbeatNews): TaskChanges {
    this.#taskList = taskList;
    const gone: number[] = [];
    const come: TaskSource[] = [];
    for (const taskId of endedTasks ?? this.#without(tasks)) {
      if (this.#tasks.delete(taskId)) gone.push(taskId);
    }
    for (const task of tasks) {
      const known = this.#tasks.get(task.taskId);
      if (known?.source.incarnation === task.source.incarnation) continue;
      if (known !== undefined) gone.push(task.taskId);
      this.#tasks.set(task.taskId, task);
      come.push(task);
    }
    return { gone, come };
  }

  #without(tasks: readonly TaskSource[]): number[] {
    const listed = new Set(tasks.map(({ taskId }) => taskId));
    return [...this.#tasks.keys()].filter((taskId) => !listed.has(taskId));
  }

  #noteUnserved(unserved: string | undefined): void {
    const { dispatcher, jobName } = this.#options;
    const { world } = this.#context;
    const said = this.#waitLog.heard(unserved, world.nowMs());
    if (said === undefined) return;
    const job = jobName === undefined ? "A job" : `Job "${jobName}"`;
    world.log("warn", `${job} of the dispatcher at ${dispatcher.node} stands still. ${said}`);
  }

  #figures(): ClientFigures & ServiceStats {
    const { inFlight, earlyBytes, orderFigures } = this.#reader;
    const bufferedBytes = this.#feed.bytes + earlyBytes;
    const atMs = this.#context.world.nowMs();
    return {
      atMs,
      ...this.#meter.figures,
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
      reads: [...Iterator.from(this.#reader.tasks).take(READS_TOLD_MAX)],
    };
  }

  /** News is expected: do not wait for the next regular heartbeat. */
  #refresh(): void {
    this.#refreshAsked = true;
    this.#refreshNow();
  }

  #pause(): Promise<void> {
    const { refreshMs = 1_000 } = this.#options;
    return new Promise((resolve) => {
      const timer = this.#context.timer(pauseWithin(refreshMs, this.#timeoutMs), resolve);
      this.#refreshNow = () => {
        timer.cancel();
        resolve();
      };
    });
  }
}
