/**
 * Fetches one task's elements with an `ElementFetcher`, decompresses them, and measures what
 * heartbeats report. An element is decompressed when it arrives, so that the training loop need not
 * wait for that: except an element that expands much, because many of these would fill the memory.
 */
import { LeatError } from "../../../core/error.ts";
import { definedFields } from "../../../core/tree.ts";
import {
  announcedBytes,
  decompressFrame,
  expandsMuch,
  isCompressed,
} from "../../../transport/compression.ts";
import { Payload } from "../../../transport/payload.ts";
import { ShardingPolicy } from "../../../data/sharding/sharding_policy.ts";
import type { TaskSource } from "../../dispatcher/protocol.ts";
import type { ReadFigures } from "../../dispatcher/protocol_figures.ts";
import { ElementFetcher, REQUEST_TIMEOUT_MS, type Wanted } from "../../exactly_once/fetcher.ts";
import { sleep } from "../../runtime/timers.ts";
import type { BandwidthFigures, ElementAnswer } from "../../worker/protocol.ts";
import { type Arrived, REPLACE_WORKER, unreadable } from "../feed.ts";
import type { ReaderDependencies } from "./reader.ts";
import { RequestTuner } from "./request_tuner.ts";
import { warnUnreached } from "../unreached.ts";

/** A remote task is told the measured bandwidth at most once in this time, in ms. */
const BANDWIDTH_NEWS_MS = 500;
/** How often the round-trip time is measured, with an empty message, in ms. */
const ROUND_TRIP_EVERY_MS = 5_000;
const ROUND_TRIP_TIMEOUT_MS = 5_000;
/** Time limit of one probe of an unreachable task, in ms. */
const PROBE_TIMEOUT_MS = 2_000;
/** Pause between two probes; doubles each time up to the maximum. */
const PROBE_MIN_MS = 20;
const PROBE_MAX_MS = 1_000;

type WithElement = Extract<ElementAnswer, { readonly element: Payload }>;

interface TaskFetcherOptions {
  /** What is wrong with an answer that no task gives to such a request; undefined: nothing. */
  readonly faultOf: (answer: ElementAnswer, wanted: Wanted) => string | undefined;
  readonly onUnreachable: () => void;
  /**
   * Called when the task can be reached again. Resolves when the client has space for its elements.
   */
  readonly whenRoom?: () => Promise<void>;
}

export class TaskFetcher {
  readonly #deps: ReaderDependencies;
  readonly #task: TaskSource;
  readonly #options: TaskFetcherOptions;
  readonly #fetcher: ElementFetcher;
  /** Names the worker and its task in errors. */
  readonly #name: string;
  readonly #isFar: boolean;
  readonly #bandwidth = new BandwidthMeter();
  readonly #tuner = new RequestTuner();
  #bandwidthSentMs: number;
  /** When the round-trip time was last measured. */
  #roundTripAtMs = -Infinity;
  #probing: Promise<void> | undefined;
  #left = false;
  #warned = false;
  #outstanding = 0;
  #elements = 0;
  #bytes = 0;
  #wireBytes = 0;
  #slotBytes = 0;
  #answerMs = 0;
  #heldMs = 0;
  #unpackMs = 0;
  #unpackedBytes = 0;

  constructor(
    deps: ReaderDependencies,
    clientId: number,
    task: TaskSource,
    options: TaskFetcherOptions,
  ) {
    this.#deps = deps;
    this.#task = task;
    this.#name = `Worker "${task.worker}" at ${task.source.node} (task ${task.taskId})`;
    this.#options = options;
    const { context } = deps;
    deps.unread.opened(task);
    const { trainerId, consumerIndex, requestTimeoutMs = REQUEST_TIMEOUT_MS, isFar } = deps.options;
    this.#isFar = isFar?.(task.source.node) ?? false;
    this.#bandwidthSentMs = context.world.nowMs();
    this.#fetcher = new ElementFetcher(context, task.source, {
      clientId,
      requestTimeoutMs,
      onFailure: (error) => this.#noteFailure(error),
      onUnreachable: (error) => this.#unreachable(error),
      whenBack: async () => {
        await (this.#probing ??= this.#probe().finally(() => this.#probing = undefined));
        await options.whenRoom?.();
      },
      ...(trainerId === undefined ? {} : { trainerId }),
      ...(consumerIndex === undefined ? {} : { consumerIndex }),
    });
  }

  /** How many requests are worth keeping open. */
  get requestsWanted(): number {
    return this.#tuner.wanted;
  }

  get figures(): ReadFigures {
    const { roundTripMs } = this.#bandwidth;
    return {
      taskId: this.#task.taskId,
      worker: this.#task.worker,
      elements: this.#elements,
      bytes: this.#bytes,
      wireBytes: this.#wireBytes,
      outstanding: this.#outstanding,
      answerMs: this.#answerMs,
      heldMs: this.#heldMs,
      ...(roundTripMs === undefined ? {} : { roundTripMs }),
      ...(this.#slotBytes === 0 ? {} : { slotBytes: this.#slotBytes }),
    };
  }

  /**
   * See {@linkcode ElementFetcher.fetch}. A failed decompression gives an `error` answer. An answer
   * that breaks the protocol fails the feed.
   */
  async fetch(wanted: Wanted = {}): Promise<Arrived> {
    const { world } = this.#deps.context;
    const askedMs = world.nowMs();
    this.#outstanding++;
    try {
      const bandwidth = this.#bandwidthNews(askedMs);
      const request = bandwidth === undefined ? wanted : { ...wanted, bandwidth };
      const answer = await this.#fetcher.fetch(request).catch((error) => this.#failed(error));
      this.#check(answer, wanted);
      this.#deps.unread.answered(this.#task);
      if (answer.kind === "later") {
        // A worker that answers much too early must not keep this client busy.
        const earlyMs = askedMs + (wanted.waitMs ?? 0) / 2 - world.nowMs();
        if (earlyMs > 0) await sleep(this.#deps.context, earlyMs);
      }
      return "element" in answer ? this.#unpacked(this.#noted(answer, askedMs)) : answer;
    } finally {
      this.#outstanding--;
    }
  }

  /** See {@linkcode ElementFetcher.askAgain}. */
  askAgain(): number {
    return this.#fetcher.askAgain();
  }

  /** Stops, and tells the source to keep nothing for this client. */
  leave(): void {
    this.#left = true;
    this.#fetcher.leave();
  }

  /** @throws {LeatError} why a request failed, with the name of the worker. */
  #failed(cause: unknown): never {
    const { code, message, details } = LeatError.from(cause);
    if (code === "cancelled") throw cause;
    const options = { ...definedFields({ details }), cause };
    throw new LeatError(code, `${this.#name} cannot be read: ${message}`, options);
  }

  /** @throws {LeatError} `data_loss`, which the training loop gets, too. */
  #check(answer: ElementAnswer, wanted: Wanted): void {
    const fault = this.#options.faultOf(answer, wanted);
    if (fault === undefined) return;
    const error = new LeatError(
      "data_loss",
      `${this.#name} broke the protocol: it sent ${fault}. ${REPLACE_WORKER}`,
    );
    this.#deps.feed.fail(error);
    throw error;
  }

  #noted(answer: WithElement, askedMs: number): WithElement {
    const nowMs = this.#deps.context.world.nowMs();
    const { heldMs = 0, element: { byteLength, cameInSlot } } = answer;
    this.#elements++;
    this.#wireBytes += byteLength;
    this.#deps.totals.wireBytes += byteLength;
    this.#answerMs += nowMs - askedMs;
    this.#heldMs += heldMs;
    this.#tuner.noteArrival(
      nowMs,
      nowMs - askedMs,
      heldMs,
      this.#deps.feed.isWaitedFor,
      byteLength,
    );
    if (cameInSlot) this.#slotBytes += byteLength;
    else if (this.#isFar) this.#bandwidth.noteArrival(nowMs, byteLength, nowMs - askedMs - heldMs);
    return answer;
  }

  #unpacked(received: WithElement): Arrived {
    const answer = { ...received, sender: this.#name };
    const { bytes } = answer.element;
    if (!isCompressed(bytes)) {
      this.#bytes += bytes.byteLength;
      return answer;
    }
    if (expandsMuch(bytes)) {
      this.#bytes += announcedBytes(bytes);
      return answer;
    }
    const { world } = this.#deps.context;
    const startMs = world.nowMs();
    try {
      const element = new Payload(decompressFrame(bytes));
      this.#bytes += element.byteLength;
      this.#unpackedBytes += element.byteLength;
      return { ...answer, element };
    } catch (error) {
      return this.#damaged(answer, error);
    } finally {
      const ms = world.nowMs() - startMs;
      this.#unpackMs += ms;
      this.#deps.totals.unpackingMs += ms;
    }
  }

  #damaged(answer: WithElement & Arrived, cause: unknown): Arrived {
    const { kind, place } = answer;
    return {
      kind: "error",
      error: unreadable(answer, cause).toWire(),
      ...definedFields({ place }),
      // Without these rows, the batches after them would hold other rows, under other numbers.
      ...(kind === "remainder" ? { isFinal: true } : {}),
    };
  }

  /** Figures by which the task decides whether compression pays; undefined if none are due. */
  #bandwidthNews(nowMs: number): BandwidthFigures | undefined {
    if (!this.#isFar) return undefined;
    this.#measureRoundTrip(nowMs);
    const { bytesPerSecond } = this.#bandwidth;
    if (bytesPerSecond === undefined || nowMs - this.#bandwidthSentMs < BANDWIDTH_NEWS_MS) {
      return undefined;
    }
    this.#bandwidthSentMs = nowMs;
    return {
      bytesPerSecond,
      waitingShare: this.#deps.feed.waitingShare,
      ...(this.#unpackMs === 0
        ? {}
        : { unpackBytesPerSecond: 1_000 * this.#unpackedBytes / this.#unpackMs }),
    };
  }

  #measureRoundTrip(nowMs: number): void {
    if (nowMs - this.#roundTripAtMs < ROUND_TRIP_EVERY_MS) return;
    this.#roundTripAtMs = nowMs;
    const { context } = this.#deps;
    context.run(async () => {
      if (await this.#answersWithin(ROUND_TRIP_TIMEOUT_MS)) {
        this.#bandwidth.roundTrip(context.world.nowMs() - nowMs);
      }
    });
  }

  /** Probes until the task answers, or is known to be gone. */
  async #probe(): Promise<void> {
    const { context, unread } = this.#deps;
    for (let failures = 0; !this.#left; failures++) {
      if (await this.#answersWithin(PROBE_TIMEOUT_MS)) return unread.answered(this.#task);
      const pauseMs = Math.min(PROBE_MAX_MS, PROBE_MIN_MS * 2 ** Math.min(failures, 10));
      await sleep(context, pauseMs * (0.5 + context.random.next() / 2));
    }
  }

  /** Whether an answer comes in time. An error that the task is gone counts as an answer. */
  async #answersWithin(timeoutMs: number): Promise<boolean> {
    try {
      await this.#deps.context.ask(this.#task.source, "stats", null, { timeoutMs });
      return true;
    } catch (thrown) {
      const error = LeatError.from(thrown);
      // Unlike the end of a worker, the dispatcher does not notice this.
      if (isRefusal(error)) this.#warn(error);
      const isReached = error.code !== "unavailable" && error.code !== "deadline_exceeded";
      if (!isReached) this.#noteFailure(error);
      return isReached;
    }
  }

  #noteFailure(error: LeatError): void {
    const { unread, context: { world } } = this.#deps;
    unread.failed(this.#task, error, world.nowMs());
  }

  #unreachable(error: LeatError): void {
    this.#options.onUnreachable();
    // If the task has answered before, its worker has probably died. The dispatcher logs that.
    if (!this.#fetcher.hasAnswered) this.#warn(error);
  }

  #warn(error: LeatError): void {
    if (this.#warned) return;
    this.#warned = true;
    const { context, options } = this.#deps;
    const { worker, source } = this.#task;
    warnUnreached(context.world, (delayMs, fn) => context.timer(delayMs, fn), {
      key: `worker "${worker}" at ${source.node}`,
      message:
        `Cannot read from worker "${worker}" at ${source.node}, the address that the dispatcher at ` +
        `${options.dispatcher.node} gives for it: ${error.message}. ${meanwhile(options)}`,
    });
  }
}

/** What happens while a worker cannot be read. */
function meanwhile({ parameters }: ReaderDependencies["options"]): string {
  if (parameters.processingMode === ShardingPolicy.DETERMINISTIC) {
    return "The stream waits for the splits that this worker has";
  }
  if (parameters.numConsumers !== undefined) return "Reading continues without it";
  return "The other workers are read meanwhile; what this one holds is waited for";
}

/** Whether the node was reached, and refuses this client: see `withoutRefusals`. */
function isRefusal({ cause }: LeatError): boolean {
  return cause instanceof LeatError &&
    ["unauthenticated", "permission_denied", "failed_precondition"].includes(cause.code);
}

/** The weight of a measurement halves in this time, in ms. */
const HALF_LIFE_MS = 2_000;
/** A longer measurement raises the assumed shortest round trip by at most this factor. */
const ROUND_TRIP_GROWTH = 1.02;

/**
 * Measures the throughput of answers. An answer's time in transit is the time since its request,
 * less the wait at its source and the round trip of an empty message. Overlapping times count once.
 */
export class BandwidthMeter {
  #roundTripMs: number | undefined;
  #bytes = 0;
  #ms = 0;
  #lastMs = 0;

  /** Notes that an empty message came back after this many ms. */
  roundTrip(ms: number): void {
    this.#roundTripMs = Math.min(ms, ROUND_TRIP_GROWTH * (this.#roundTripMs ?? ms));
  }

  /** The round trip of an empty message on an idle network, in ms; undefined before the first. */
  get roundTripMs(): number | undefined {
    return this.#roundTripMs;
  }

  /** Notes an answer. @param onTheWayMs The time since its request, less the wait at its source. */
  noteArrival(nowMs: number, bytes: number, onTheWayMs: number): void {
    const kept = 0.5 ** ((nowMs - this.#lastMs) / HALF_LIFE_MS);
    const sendingMs = Math.max(0, onTheWayMs - (this.roundTripMs ?? 0));
    this.#bytes = this.#bytes * kept + bytes;
    this.#ms = this.#ms * kept + Math.min(sendingMs, nowMs - this.#lastMs);
    this.#lastMs = nowMs;
  }

  /** Bytes per second while answers are in transit; undefined before it is measured. */
  get bytesPerSecond(): number | undefined {
    if (this.#bytes === 0 || this.#roundTripMs === undefined) return undefined;
    // A transfer that takes no measurable time gets the highest rate that can be reported.
    return Math.min(1e12, 1_000 * this.#bytes / Math.max(this.#ms, Number.MIN_VALUE));
  }
}
