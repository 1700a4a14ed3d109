/** Requests splits for a task from the dispatcher. */
import { LeatError, type LeatErrorCode } from "../../../core/error.ts";
import type { Split } from "../../../data/sharding/splits.ts";
import {
  type DispatcherProtocol,
  OF_ITERATION,
  SPARE_SERIES,
  SPLITS_AT_ONCE_MAX,
  TASK_ENDED,
  type TaskDefinition,
} from "../../dispatcher/protocol.ts";
import { dispatcherAnswers } from "../../dispatcher/protocol_check.ts";
import type { ActorContext } from "../../runtime/actor.ts";
import type { AnswerOf, RequestOf } from "../../runtime/protocol.ts";
import type { Ref } from "../../runtime/ref.ts";
import type { ElementGiverProtocol } from "../protocol.ts";
import type { AssignedSplit } from "./held_split.ts";
import { type RunnerSplits, TASK_FENCED } from "../runner/runner.ts";

type SplitRequest = RequestOf<DispatcherProtocol, "getSplit">;
type SplitAnswer = AnswerOf<DispatcherProtocol, "getSplit">;

/** How long one request for a split may go unanswered before it is asked again, in ms. */
const SPLIT_ATTEMPT_MS = 2_000;

/** Codes with which the dispatcher refuses the worker, for example after its token was withdrawn. */
const NOT_ADMITTED: readonly LeatErrorCode[] = ["unauthenticated", "permission_denied"];

/** How long a reader may take to read and send elements of a source, in ms. */
const GIVEN_TIMEOUT_MS = 60_000;

/** Asks the dispatcher for splits. Requests are numbered, so that a repeated one is handled once. */
export class TaskSplits {
  readonly #context: ActorContext;
  readonly #definition: TaskDefinition;
  readonly #dispatcher: Ref<DispatcherProtocol>;
  readonly #timeoutMs: number;
  /** Resolves to the reader of the task, which may send elements of its source. */
  readonly #reader = Promise.withResolvers<Ref<ElementGiverProtocol>>();
  #closed = false;
  /** Per source: splits requested so far. */
  readonly #numbers: number[] = [];
  /** Per source: the splits of a mode without an order. */
  readonly #supplies: SplitSupply[] = [];
  /** Per source: the size of its table, once an answer has given it. */
  readonly #totals: number[] = [];

  constructor(
    context: ActorContext,
    definition: TaskDefinition,
    options: { readonly dispatcher: Ref<DispatcherProtocol>; readonly dispatcherTimeoutMs: number },
  ) {
    this.#context = context;
    this.#definition = definition;
    this.#dispatcher = options.dispatcher;
    this.#timeoutMs = options.dispatcherTimeoutMs;
  }

  /** Requests no more splits: only those that are already assigned are supplied. */
  close(): void {
    this.#closed = true;
  }

  /**
   * The splits for one runner.
   * @param isCurrent Whether it is still the task's runner. If not, the next runner gets its splits.
   */
  forRunner(isCurrent: () => boolean): RunnerSplits {
    return {
      next: (source, repetition) => this.next(source, repetition, isCurrent),
      total: (source) => this.#total(source),
      read: (split, from) => this.#read(split, from),
    };
  }

  /** @throws {LeatError} `cancelled` if the split is no longer wanted. */
  async next(
    source: number,
    repetition: number,
    isWanted: () => boolean,
  ): Promise<Split | null> {
    const split = await this.#supplyOf(source).next(repetition, isWanted);
    return split ?? (this.#closed ? this.#none() : null);
  }

  #supplyOf(source: number): SplitSupply {
    return this.#supplies[source] ??= new SplitSupply(
      () => this.#context.world.nowMs(),
      async (repetition, count) => {
        if (this.#closed) return [];
        const request = this.#numbered({ source, repetition, ...(count > 1 ? { count } : {}) });
        const { split, more = [] } = await this.#askAdmitted(request);
        return split === null ? [] : [split, ...more];
      },
    );
  }

  /**
   * DETERMINISTIC: the next split, or null if the task gets no more. Waits without limit.
   * @param spare Requests only a lost split that comes before all splits that this task holds.
   */
  async nextOrdered(spare: boolean): Promise<AssignedSplit | null> {
    if (this.#closed) return null;
    const request = this.#numbered({ source: 0, repetition: 0, ...(spare ? { spare } : {}) });
    for (;;) {
      try {
        return (await this.#ask(request)).split as AssignedSplit | null;
      } catch (error) {
        const { code } = LeatError.from(error);
        if (code !== "deadline_exceeded" && code !== "unavailable") throw error;
      }
    }
  }

  #numbered(request: Omit<SplitRequest, "taskId" | "number">): SplitRequest {
    const series = request.spare === true ? SPARE_SERIES : request.source;
    const number = (this.#numbers[series] ?? 0) + 1;
    this.#numbers[series] = number + (request.count ?? 1) - 1;
    return { taskId: this.#definition.taskId, number, ...request };
  }

  /**
   * As `#ask`. If the dispatcher refuses this worker, the task ends: that is no failure of the data,
   * and other workers go on.
   */
  async #askAdmitted(request: SplitRequest): Promise<SplitAnswer> {
    try {
      return await this.#ask(request);
    } catch (error) {
      const failure = LeatError.from(error);
      const isOfData = failure.details?.[OF_ITERATION] === true;
      if (isOfData || !NOT_ADMITTED.includes(failure.code)) throw failure;
      const { taskId } = this.#definition;
      this.#context.world.log("error", `Task ${taskId} gets no splits: ${failure.message}`);
      throw fenced(failure.message);
    }
  }

  async #ask(request: SplitRequest): Promise<SplitAnswer> {
    const askOptions = {
      timeoutMs: this.#timeoutMs,
      attemptMs: SPLIT_ATTEMPT_MS,
      isIdempotent: true,
    } as const;
    if (this.#context.world.fault("task_splits.ask_twice")) {
      this.#context.ask(this.#dispatcher, "getSplit", request, askOptions).catch(() => {});
    }
    try {
      const answered = await this.#context.ask(this.#dispatcher, "getSplit", request, askOptions);
      const answer = dispatcherAnswers.getSplit(answered, this.#dispatcher.node);
      this.#totals[request.source] = answer.total;
      return answer;
    } catch (error) {
      const failure = LeatError.from(error);
      if (failure.details?.["reason"] !== TASK_ENDED) throw failure;
      throw fenced(failure.message);
    }
  }

  /**
   * There are no more splits, so the pipeline ends. An infinite pipeline would ask for ever, so it
   * gets an error.
   */
  #none(): null {
    if (this.#definition.dataset.cardinality !== -1) return null;
    throw fenced("The worker is draining");
  }

  /** Notes the reader that requests the task's elements. */
  readBy(reader: Ref<ElementGiverProtocol>): void {
    this.#reader.resolve(reader);
  }

  async #read(split: number, from: number): Promise<Uint8Array> {
    const reader = await this.#reader.promise;
    const request = { split, from };
    const askOptions = {
      timeoutMs: GIVEN_TIMEOUT_MS,
      attemptMs: SPLIT_ATTEMPT_MS,
      isIdempotent: true,
    } as const;
    return (await this.#context.ask(reader, "readSource", request, askOptions)).given.bytes;
  }

  /** The number of splits. A pipeline asks only after it has read some; until then 0. */
  #total(source: number): Promise<number> {
    return Promise.resolve(this.#totals[source] ?? 0);
  }
}

/** A request for splits should take at most this share of the time that the work on them takes. */
const REQUEST_SHARE_MAX = 1 / 4;

/** The weight of the newest duration in a mean of durations. */
const NEWEST_WEIGHT = 0.25;

/** Resolves to at most `count` splits; to none if none remain. */
type Request = (repetition: number, count: number) => Promise<readonly Split[]>;

/**
 * The assigned splits of one source that the task has not begun to read. Usually there are none, so
 * that another worker may get the next split. But if a request takes long compared with the work on a
 * split (small splits, or a slow disk of the dispatcher), the task requests several at once: at most
 * twice as many as last time, as `interleave` takes its first splits in a row, however long the work
 * on them takes. Calls of `next()` are answered one after the other: a runner that died may still
 * wait for a split when the next runner begins.
 */
export class SplitSupply {
  readonly #nowMs: () => number;
  readonly #request: Request;
  #repetition = 0;
  #assigned: Split[] = [];
  #gaveAtMs: number | undefined;
  /** Mean times, in ms: of the work on a split, and of a request. */
  #workMs: number | undefined;
  #requestMs: number | undefined;
  /** How many splits the last request asked for. */
  #asked = 1;
  #last: Promise<unknown> = Promise.resolve();

  constructor(nowMs: () => number, request: Request) {
    this.#nowMs = nowMs;
    this.#request = request;
  }

  /**
   * The next split of a repetition; undefined after the last.
   * @param isWanted Whether the caller still exists. If not, the split stays for the next call.
   * @throws {LeatError} `cancelled` if the split is no longer wanted.
   */
  next(repetition: number, isWanted: () => boolean): Promise<Split | undefined> {
    const next = this.#last.then(() => this.#next(repetition, isWanted));
    this.#last = next.catch(() => {});
    return next;
  }

  async #next(repetition: number, isWanted: () => boolean): Promise<Split | undefined> {
    checkWanted(isWanted);
    // A restarted runner first reads repetitions that are over.
    if (repetition < this.#repetition) return (await this.#request(repetition, 1))[0];
    if (repetition > this.#repetition) {
      this.#repetition = repetition;
      this.#assigned = [];
    } else if (this.#gaveAtMs !== undefined) {
      this.#workMs = mean(this.#workMs, this.#nowMs() - this.#gaveAtMs);
    }
    if (this.#assigned.length === 0) {
      const askedAtMs = this.#nowMs();
      this.#asked = this.#count();
      this.#assigned = [...await this.#request(repetition, this.#asked)];
      // The first request also waits until the splits are listed.
      const isFirst = this.#gaveAtMs === undefined;
      if (!isFirst) this.#requestMs = mean(this.#requestMs, this.#nowMs() - askedAtMs);
    }
    checkWanted(isWanted);
    this.#gaveAtMs = this.#nowMs();
    return this.#assigned.shift();
  }

  #count(): number {
    if (this.#workMs === undefined || !this.#requestMs) return 1;
    const enough = Math.ceil(this.#requestMs / (REQUEST_SHARE_MAX * this.#workMs));
    return Math.max(1, Math.min(SPLITS_AT_ONCE_MAX, 2 * this.#asked, enough));
  }
}

function fenced(message: string): LeatError {
  return new LeatError("failed_precondition", message, { details: { reason: TASK_FENCED } });
}

function checkWanted(isWanted: () => boolean): void {
  if (!isWanted()) throw new LeatError("cancelled", "The runner that requested a split has ended");
}

function mean(before: number | undefined, newest: number): number {
  return before === undefined ? newest : before + NEWEST_WEIGHT * (newest - before);
}
