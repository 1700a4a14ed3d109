/** A task: runs one pipeline on one worker, a little ahead of requests, and serves clients round-robin. */
import { LeatError } from "../../../core/error.ts";
import { Fifo } from "../../../core/fifo.ts";
import { MODE_FACTS } from "../../../data/sharding/sharding_policy.ts";
import type { DispatcherProtocol, TaskDefinition } from "../../dispatcher/protocol.ts";
import type { Actor, ActorContext } from "../../runtime/actor.ts";
import type { RequestOf } from "../../runtime/protocol.ts";
import type { Ref } from "../../runtime/ref.ts";
import type {
  ElementAnswer,
  ElementReaderProtocol,
  ElementSourceProtocol,
  GetElementRequest,
  TaskSourceStats,
  TaskStats,
} from "../protocol.ts";
import { elementSourceAccess } from "../protocol_access.ts";
import { taskChecks } from "../protocol_check.ts";
import { REQUEST_TIMEOUT_MS } from "../../exactly_once/fetcher.ts";
import { FinalAcknowledgements } from "../../exactly_once/final_acknowledgements.ts";
import { PRESSED_IDLE_MS, readerId, releaseArrived, Repeats } from "../../exactly_once/repeats.ts";
import {
  type Runner,
  type RunnerFactory,
  type RunnerOutcome,
  TASK_FENCED,
} from "../runner/runner.ts";
import { RunnerDeaths } from "../runner/runner_deaths.ts";
import { TaskPipeline, type TaskPipelineOptions } from "./task_pipeline.ts";
import { TaskSplits } from "./task_splits.ts";
import { RequestQueue, type Waiting } from "./request_queue.ts";

/** Elements produced ahead of requests, per task. */
const AHEAD_ELEMENTS_MAX = 2;
/** Limit of requests open at the runner for waiting clients. With several, it does not idle. */
const ASKED_ELEMENTS_MAX = 32;
/** Limit of the bytes that these requests may produce, which are wasted if the clients leave. */
const ASKED_BYTES_MAX = 2 ** 20;
/** How many characters of a failure are reported. */
const FAILURE_LENGTH_MAX = 1_024;
/** Default limit of the bytes produced ahead of requests. Above it no more are produced. */
export const AHEAD_BYTES_MAX = 64 * 2 ** 20;
/**
 * How long a draining task waits for an acknowledgement, in ms. Clients repeat requests sooner.
 * Caches and schedulers do not, but they are on the task's node, where no answer is lost.
 */
export const ACKNOWLEDGED_WITHIN_MS = REQUEST_TIMEOUT_MS + 5_000;

export interface TaskOptions {
  readonly definition: TaskDefinition;
  readonly dispatcher: Ref<DispatcherProtocol>;
  readonly runners: RunnerFactory;
  /** How long a task waits for a split while the dispatcher is away, in ms. */
  readonly dispatcherTimeoutMs: number;
  /** Once this many bytes are produced ahead of clients' requests, the runner is asked for no more. */
  readonly aheadBytesMax: number;
  /** Draining: how long a client may take to acknowledge what it was given, in ms. */
  readonly acknowledgedWithinMs: number;
  /** Called once, when the pipeline has produced everything. */
  readonly onCompleted: () => void;
  /** Called once, when the pipeline cannot start or continue. */
  readonly onFailed: () => void;
  /** Called when the dispatcher has ended the task, or allows it no more runners. */
  readonly onFenced: () => void;
}

/** What a worker asks of its tasks in addition to clients' requests. */
export interface TaskProtocol extends ElementSourceProtocol {
  /**
   * Takes no more splits. Answers when clients have fetched all elements of the splits that it has,
   * or are silent. False if a silent one may come back and repeat its requests; ask again then.
   */
  drain(request: null): boolean;
  stats(request: null): TaskSourceStats;
}

export function createTask(
  context: ActorContext<TaskProtocol>,
  options: TaskOptions,
): Actor<TaskProtocol> {
  return taskActor(new Task(context, options));
}

/** A task that runs one pipeline for its readers, in any mode. */
export interface RunningTask {
  start(): void;
  stop(): void;
  /**
   * Takes no more splits. Resolves when clients have fetched all elements of the splits that it has,
   * or are silent. False if a silent one may come back and repeat its requests.
   */
  drain(): Promise<boolean>;
  /** @param asker The reader, which understands the requests of `ElementReaderProtocol`. */
  getElement(
    request: GetElementRequest,
    asker: Ref<ElementReaderProtocol>,
  ): ElementAnswer | Promise<ElementAnswer>;
  leave(request: RequestOf<ElementSourceProtocol, "leave">, asker: Ref): void;
  stats(): TaskStats;
}

/** A task's figures, in the form in which caches and schedulers report theirs. */
export function sourceStats(stats: TaskStats): TaskSourceStats {
  return { role: "task", skipped: 0, ...stats };
}

export function taskActor(task: RunningTask): Actor<TaskProtocol> {
  return {
    handlers: {
      getElement: (request, { source }) =>
        task.getElement(request, source as Ref<ElementReaderProtocol>),
      leave: (request, { source }) => {
        task.leave(request, source);
        return null;
      },
      stats: () => sourceStats(task.stats()),
      drain: () => task.drain(),
    },
    checks: taskChecks,
    access: { ...elementSourceAccess, drain: [] },
    start: () => task.start(),
    stop: () => task.stop(),
  };
}

type Failure = Extract<RunnerOutcome, { readonly kind: "error" }>;

class Task implements RunningTask {
  readonly #context: ActorContext;
  readonly #options: TaskOptions;
  readonly #repeats: Repeats;
  /** Kept when a runner dies, so that the numbers of its split requests go on with the next runner. */
  readonly #splits: TaskSplits;
  readonly #pipeline: TaskPipeline;
  readonly #deaths: RunnerDeaths;
  readonly #ahead = new Fifo<ElementAnswer>();
  readonly #waiting = new RequestQueue();
  #aheadBytes = 0;
  #newestBytes = 0;
  /** Requests open at the current runner. */
  #openRequests = 0;
  /** Whether nothing more is produced until clients acknowledge what they were given. */
  #isHeldBack = false;
  #ended = false;
  /**
   * Coordinated reads: whether the task ended because it drains. Consumers would take its end for
   * the end of the job, so their requests wait until the worker has left.
   */
  #hidesEnd = false;
  /** Why the pipeline cannot continue. Every later request gets this answer. */
  #failure: Failure | undefined;
  #draining: PromiseWithResolvers<void> | undefined;
  readonly #acknowledging: FinalAcknowledgements;
  #produced = 0;

  constructor(context: ActorContext, options: TaskOptions) {
    this.#context = context;
    this.#options = options;
    this.#repeats = new Repeats(context.world, {
      refusesLost: true,
      onArrived: releaseArrived,
      onEnded: (reader, why) => {
        for (const { answer } of this.#waiting.leave(reader)) answer.reject(why);
      },
    });
    this.#acknowledging = new FinalAcknowledgements({
      context,
      repeats: this.#repeats,
      acknowledgedWithinMs: options.acknowledgedWithinMs,
      onChange: () => this.#noteAcknowledged(),
    });
    const { definition, runners } = options;
    this.#splits = new TaskSplits(context, definition, options);
    this.#deaths = new RunnerDeaths({ context, ...options });
    this.#pipeline = new TaskPipeline({
      context,
      definition,
      runners,
      settings: settingsOf(definition),
      splits: (isCurrent) => this.#splits.forRunner(isCurrent),
    });
  }

  start(): void {
    this.#pipeline.start();
    this.#pull();
  }

  stop(): void {
    this.#pipeline.retire();
    if (this.#waiting.length === 0) return;
    const gone = new LeatError("not_found", `Task ${this.#options.definition.taskId} has ended`);
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      next.answer.reject(gone);
    }
  }

  async drain(): Promise<boolean> {
    this.#splits.close();
    this.#draining ??= Promise.withResolvers<void>();
    const { processingMode } = this.#options.definition.parameters;
    if (!MODE_FACTS[processingMode].asksForSplits) this.#end();
    this.#noteDrained();
    await this.#draining.promise;
    return this.#repeats.awaited(PRESSED_IDLE_MS).length === 0;
  }

  /**
   * Ends the drain if all elements have been fetched. An answer may be lost on its way, so an
   * element counts as fetched once it is acknowledged.
   */
  #noteDrained(): void {
    const isOver = this.#ended || this.#failure !== undefined;
    if (this.#draining === undefined || !isOver || this.#ahead.length > 0) return;
    if (this.#acknowledging.settle()) this.#draining.resolve();
  }

  getElement(
    request: GetElementRequest,
    asker: Ref<ElementReaderProtocol>,
  ): ElementAnswer | Promise<ElementAnswer> {
    this.#pipeline.noteAsked();
    this.#pipeline.noteBandwidth(request.bandwidth);
    try {
      return this.#repeats.answer(request, () => this.#take(request, asker), asker);
    } finally {
      this.#noteAcknowledged();
    }
  }

  #noteAcknowledged(): void {
    if (this.#isHeldBack && !this.#repeats.isFull) this.#pull();
    this.#noteDrained();
  }

  /** Forgets a client. The elements that it waits for go to other clients. */
  leave({ clientId }: RequestOf<ElementSourceProtocol, "leave">, asker: Ref): void {
    this.#repeats.leave(readerId(asker, clientId));
    this.#noteAcknowledged();
  }

  stats(): TaskStats {
    return {
      ...this.#pipeline.stats({
        produced: this.#produced,
        bufferedBytes: this.#aheadBytes,
        waiting: this.#waiting.length,
      }),
      ...(this.#failure === undefined ? {} : {
        // Each heartbeat carries the failures of all tasks.
        failure: this.#failure.error.message.slice(0, FAILURE_LENGTH_MAX).toWellFormed(),
      }),
    };
  }

  #take(
    { clientId, waitMs }: GetElementRequest,
    asker: Ref<ElementReaderProtocol>,
  ): ElementAnswer | Promise<ElementAnswer> {
    const ready = this.#ahead.shift();
    if (ready !== undefined) {
      if (ready.kind === "element") this.#aheadBytes -= ready.element.byteLength;
      this.#pipeline.handOut(ready);
      this.#pull();
      return ready;
    }
    if (this.#failure !== undefined) return this.#failure;
    if (this.#ended && !this.#hidesEnd) return { kind: "end" };
    const answer = Promise.withResolvers<ElementAnswer>();
    const waiting = { reader: readerId(asker as Ref, clientId), answer };
    this.#waiting.push(waiting);
    this.#pull();
    if (waitMs !== undefined) this.#answerLaterAfter(waiting, waitMs);
    return answer.promise;
  }

  /** Answers `later` after `waitMs`: the client has other sources to ask. */
  #answerLaterAfter(waiting: Waiting, waitMs: number): void {
    const isOver = this.#context.world.fault("task.later_at_once");
    const timer = this.#context.timer(isOver ? 0 : waitMs, () => {
      if (this.#waiting.delete(waiting)) waiting.answer.resolve({ kind: "later" });
    });
    waiting.answer.promise.then(() => timer.cancel(), () => timer.cancel());
  }

  /**
   * Keeps one request open at the runner for each waiting client, up to a limit, and a few more,
   * for elements produced ahead.
   */
  #pull(): void {
    const { runner } = this.#pipeline;
    this.#isHeldBack = this.#repeats.isFull;
    if (this.#isHeldBack) return;
    const aheadMax = this.#context.world.fault("task.nothing_ahead") ? 0 : AHEAD_ELEMENTS_MAX;
    const wanted = Math.min(this.#waiting.length, this.#askedMax) + aheadMax;
    while (
      runner !== undefined && !this.#ended && this.#hasRoom &&
      this.#openRequests + this.#ahead.length < wanted
    ) {
      this.#openRequests++;
      this.#context.run(async () => {
        let outcome: RunnerOutcome;
        try {
          outcome = await this.#pipeline.step(runner);
        } catch (error) {
          this.#runnerDied(runner, LeatError.from(error, "unavailable"));
          return;
        }
        if (runner !== this.#pipeline.runner) return;
        this.#openRequests--;
        this.#came(outcome);
      });
    }
  }

  get #askedMax(): number {
    const fit = this.#newestBytes === 0 ? 0 : Math.floor(ASKED_BYTES_MAX / this.#newestBytes);
    return Math.max(AHEAD_ELEMENTS_MAX, Math.min(ASKED_ELEMENTS_MAX, fit));
  }

  /** Whether one more element ahead of requests fits, if it is as large as the last. */
  get #hasRoom(): boolean {
    const spare = Math.max(0, this.#openRequests - this.#waiting.length);
    return this.#aheadBytes + spare * this.#newestBytes < this.#options.aheadBytesMax;
  }

  #came(outcome: RunnerOutcome): void {
    if (outcome.kind === "end") return this.#end();
    if (outcome.kind === "error" && this.#endIfFenced(outcome)) return;
    if (outcome.kind === "error" && outcome.isFinal === true) return this.#fail(outcome);
    this.#produced++;
    if ("frame" in outcome) this.#newestBytes = outcome.frame.byteLength;
    const answer: ElementAnswer = "frame" in outcome
      ? { kind: "element", element: this.#pipeline.payloadOf(outcome.frame) }
      : { kind: "error", error: outcome.error };
    const waiting = this.#waiting.shift();
    if (waiting === undefined) {
      this.#ahead.push(answer);
      if (answer.kind === "element") this.#aheadBytes += answer.element.byteLength;
    } else {
      this.#pipeline.handOut(answer);
      waiting.answer.resolve(answer);
    }
    this.#pull();
  }

  /**
   * If the error says that the task gets no splits any more, ends it and returns true. A draining
   * task ends as usual; any other tells its clients nothing.
   */
  #endIfFenced({ error }: Failure): boolean {
    if (error.details?.["reason"] !== TASK_FENCED) return false;
    if (this.#draining === undefined) {
      this.#pipeline.retire();
      this.#options.onFenced();
    } else this.#end();
    return true;
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    const { numConsumers } = this.#options.definition.parameters;
    this.#hidesEnd = this.#draining !== undefined && numConsumers !== undefined;
    this.#pipeline.retire();
    if (!this.#hidesEnd) this.#answerAll({ kind: "end" });
    this.#noteDrained();
    // A task that drains is not complete: another worker, or this one after a restart, may continue it.
    if (this.#draining === undefined) this.#options.onCompleted();
  }

  /**
   * Ends the pipeline with an error. Does not report completion: the dispatcher would treat that as
   * the end of the data.
   */
  #fail(failure: Failure): void {
    this.#failure = failure;
    const { definition: { taskId }, onFailed } = this.#options;
    const { code, message } = failure.error;
    this.#context.world.log("error", `Task ${taskId} cannot continue: ${message}`, { code });
    onFailed();
    this.#pipeline.retire();
    this.#answerAll(failure);
    this.#noteDrained();
  }

  #answerAll(answer: ElementAnswer): void {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      next.answer.resolve(answer);
    }
  }

  #runnerDied(runner: Runner, error: LeatError): void {
    if (!this.#pipeline.handleRunnerDeath(runner, error)) return;
    this.#context.run(async () => {
      const mayStart = await this.#deaths.mayStartAfter(error);
      if (this.#ended) return;
      // If the job has failed, the dispatcher tells clients why.
      if (!mayStart) return this.#options.onFenced();
      this.#pipeline.start();
      this.#openRequests = 0;
      this.#came({ kind: "error", error: error.toWire() });
    });
  }
}

/** The part of a pipeline that a task runs, and its random state. */
function settingsOf(definition: TaskDefinition): TaskPipelineOptions["settings"] {
  const { taskId, parameters, repetition, shard } = definition;
  const { processingMode: mode, policy, sharing } = parameters;
  const { asksForSplits, elementsDifferByTask } = MODE_FACTS[mode];
  return {
    // A share keeps its number in every run; which splits a task gets differs anyway.
    task: elementsDifferByTask ? shard === undefined ? taskId : shard.index + 1 : 0,
    epoch: repetition,
    splits: asksForSplits,
    ...(shard === undefined
      ? {}
      : { shard: { ...shard, mode, ...(policy === undefined ? {} : { policy }) } }),
    shared: sharing,
  };
}
