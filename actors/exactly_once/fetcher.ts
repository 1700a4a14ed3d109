/**
 * The requesting side (in a client, cache or scheduler): numbers the requests to a source,
 * acknowledges answers, and repeats requests whose answers are lost.
 */
import { LeatError, type WireError } from "../../core/error.ts";
import { Fifo } from "../../core/fifo.ts";
import { definedFields } from "../../core/tree.ts";
import type { ActorContext } from "../runtime/actor.ts";
import { mayBeTakenLater } from "../runtime/asking/asks.ts";
import type { Ref } from "../runtime/ref.ts";
import type { Timer } from "../runtime/world.ts";
import type {
  ElementAnswer,
  ElementSourceProtocol,
  GetElementRequest,
} from "../worker/protocol.ts";
import { UNACKNOWLEDGED_MAX } from "./repeats.ts";
import { decodeMessage, encodeMessage } from "../../transport/codec.ts";
import { Payload } from "../../transport/payload.ts";
import {
  answerCheckOf,
  count,
  duration,
  flag,
  instance,
  kind,
  object,
  oneKindOf,
  optional,
  wireError,
} from "../runtime/checks.ts";

/** Default time after which a client repeats a request for an element, in ms. */
export const REQUEST_TIMEOUT_MS = 30_000;

/** Delay before an unreachable source is asked again; doubles up to the maximum. */
const RETRY_MIN_MS = 20;
const RETRY_MAX_MS = 1_000;

/** Each attempt still accepts its answer for this multiple of `requestTimeoutMs`. */
const LATE_TIMES = 10;

/**
 * The source may ask for copies of the requests in flight once in this time, in ms, because each copy
 * takes memory until its time is over. A source that drains asks at most each two seconds for long.
 */
const EARLY_COPIES_MS = 1_000;

/** An element's error with more bytes, or more structure, loses its details and cause. */
const ERROR_BYTES_MAX = 2 ** 20;

interface ElementFetcherOptions {
  readonly clientId: number;
  readonly trainerId?: string;
  readonly consumerIndex?: number;
  /** How long one request stays open before it is repeated, in ms. */
  readonly requestTimeoutMs: number;
  /** Called when the source refuses a request for now, or is unreachable. The request is repeated. */
  readonly onFailure?: (error: LeatError) => void;
  /** Called when the source is unreachable; fetching continues until `stop()`. */
  readonly onUnreachable?: (error: LeatError) => void;
  /** Called when the source is unreachable, after the usual pause. Resolves when to ask again. */
  readonly whenBack?: () => Promise<void>;
}

/** The fields of a request that the caller sets: which element it wants, and figures to report. */
export type Wanted = Omit<
  GetElementRequest,
  "clientId" | "sequence" | "acknowledged" | "patient" | "trainerId" | "consumerIndex"
>;

/** A `fetch` call that has not returned. */
interface Fetching {
  readonly sequence: number;
  readonly wanted: Wanted;
  readonly resolve: (answer: ElementAnswer) => void;
  readonly reject: (error: unknown) => void;
  attempts: number;
  /** When the request is repeated; Infinity while none is in flight. */
  dueMs: number;
  /** How many copies were asked for because the answer took long, since the source was last unreachable. */
  copies: number;
  /** Before this, a repeated request asks for no other copy: the last one may be on its way. */
  patientUntilMs: number;
}

/**
 * Fetches elements from one source, exactly once each. One timer serves all requests, and there are
 * no promises but the caller's and the ask's, because this runs for every element.
 */
export class ElementFetcher {
  readonly source: Ref<ElementSourceProtocol>;
  readonly #context: ActorContext;
  readonly #options: ElementFetcherOptions;
  readonly #open = new Set<Fetching>();
  /** Calls whose requests are not sent yet, because the source would refuse numbers this high. */
  readonly #held = new Fifo<Fetching>();
  /** Answered requests above `#acknowledged`. */
  readonly #answered = new Set<number>();
  #timer: Timer | undefined;
  #noEarlyCopiesUntilMs = 0;
  #sequence = 0;
  /** All requests up to this number are answered. */
  #acknowledged = 0;
  /** How long the last element was on its way, with its request. */
  #transitMs = 0;
  #stopped = false;
  #hasEnded = false;

  constructor(
    context: ActorContext,
    source: Ref<ElementSourceProtocol>,
    options: ElementFetcherOptions,
  ) {
    this.#context = context;
    this.source = source;
    this.#options = options;
  }

  get hasAnswered(): boolean {
    return this.#acknowledged > 0 || this.#answered.size > 0;
  }

  /**
   * The next element of this client. Calls may overlap. Requests more than
   * {@linkcode UNACKNOWLEDGED_MAX} beyond the last acknowledged one wait before they are sent.
   * @throws LeatError `cancelled`, or one of {@linkcode isSourceGone}.
   */
  fetch(wanted: Wanted = {}): Promise<ElementAnswer> {
    const sequence = ++this.#sequence;
    if (this.#stopped) return Promise.reject(stoppedError());
    return new Promise((resolve, reject) => {
      const times = { attempts: 0, dueMs: Infinity, copies: 0, patientUntilMs: 0 };
      const fetching: Fetching = { sequence, wanted, resolve, reject, ...times };
      this.#open.add(fetching);
      if (sequence > this.#reach) this.#held.push(fetching);
      else this.#attempt(fetching);
    });
  }

  /**
   * Repeats all requests in flight, once in {@linkcode EARLY_COPIES_MS}. Returns the number up to which
   * every answer has arrived.
   */
  askAgain(): number {
    const nowMs = this.#context.world.nowMs();
    if (nowMs < this.#noEarlyCopiesUntilMs) return this.#acknowledged;
    this.#noEarlyCopiesUntilMs = nowMs + EARLY_COPIES_MS;
    for (const fetching of this.#open) if (fetching.dueMs < Infinity) this.#attempt(fetching);
    return this.#acknowledged;
  }

  /** Rejects open calls, and later ones, with `cancelled`. */
  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#timer?.cancel();
    if (this.#open.size === 0) return;
    const error = stoppedError();
    for (const { reject } of this.#open) reject(error);
    this.#open.clear();
  }

  /** Stops, and tells the source to keep nothing for this client. */
  leave(): void {
    this.stop();
    this.#tellLeave();
  }

  /** The source refuses requests above this number. */
  get #reach(): number {
    return this.#acknowledged + UNACKNOWLEDGED_MAX;
  }

  #tellLeave(): void {
    const { clientId, consumerIndex } = this.#options;
    const consumers = consumerIndex === undefined ? undefined : [consumerIndex];
    this.#context.tell(this.source, "leave", { clientId, ...definedFields({ consumers }) });
  }

  /** After the last answers, sends `leave`: no later request would acknowledge them. */
  #leaveAtEnd(): void {
    const hasAll = this.#hasEnded && this.#open.size === 0;
    if (hasAll && this.#options.consumerIndex === undefined) this.#tellLeave();
  }

  /**
   * Sends a request. Answers to earlier attempts count, too: one may hold the only copy of the
   * element.
   */
  #attempt(fetching: Fetching, isPatient = false): void {
    const { requestTimeoutMs } = this.#options;
    const attempt = ++fetching.attempts;
    const sentMs = this.#context.world.nowMs();
    fetching.dueMs = sentMs + requestTimeoutMs;
    if (!isPatient) fetching.patientUntilMs = sentMs + this.#patienceMs(fetching.copies);
    this.#askAgainIn(requestTimeoutMs);
    if (this.#context.world.fault("fetcher.ask_again_at_once")) {
      this.#context.timer(0, () => {
        if (this.#open.has(fetching)) this.#attempt(fetching);
      });
    }
    this.#ask(fetching, isPatient).then((received) => {
      let answer: ElementAnswer;
      try {
        answer = answerToKeep(received, this.source.node);
      } catch (fault) {
        return this.#context.run(() => this.#failed(fetching, fault));
      }
      // An end is small, and says not how long it was held.
      if ("element" in answer) {
        this.#transitMs = this.#context.world.nowMs() - sentMs - (answer.heldMs ?? 0);
      }
      if (this.#settle(fetching)) {
        if (answer.kind === "end") this.#hasEnded = true;
        this.#leaveAtEnd();
        fetching.resolve(answer);
      }
    }, (error) => {
      if (!this.#open.has(fetching) || attempt !== fetching.attempts) return;
      this.#context.run(() => this.#failed(fetching, error));
    });
  }

  /**
   * How long a copy of an answer may be on its way before another is asked for. Copies queue behind
   * each other: on a slow link, copies at a fixed interval would leave no room for other answers.
   */
  #patienceMs(copies: number): number {
    const { requestTimeoutMs } = this.#options;
    const firstMs = Math.max(requestTimeoutMs, 2 * this.#transitMs);
    return Math.min(LATE_TIMES * requestTimeoutMs, firstMs * 2 ** copies);
  }

  #ask({ sequence, wanted }: Fetching, isPatient: boolean): Promise<ElementAnswer> {
    const { clientId, trainerId, consumerIndex, requestTimeoutMs } = this.#options;
    const acknowledgesLate = this.#context.world.fault("fetcher.acknowledge_late");
    const request: GetElementRequest = {
      clientId,
      sequence,
      acknowledged: acknowledgesLate ? 0 : this.#acknowledged,
      ...(isPatient ? { patient: true } : {}),
      ...(trainerId === undefined ? {} : { trainerId }),
      ...(consumerIndex === undefined ? {} : { consumerIndex }),
      ...wanted,
    };
    return this.#context.ask(this.source, "getElement", request, {
      timeoutMs: LATE_TIMES * requestTimeoutMs,
    });
  }

  /**
   * Repeats requests that take too long, also those whose answers may be on their way: their source
   * may not have got them, and must know that this client lives.
   */
  #askAgain(): void {
    this.#timer = undefined;
    const nowMs = this.#context.world.nowMs();
    const overdue: Fetching[] = [];
    let nextMs = Infinity;
    for (const fetching of this.#open) {
      if (fetching.dueMs <= nowMs) overdue.push(fetching);
      else nextMs = Math.min(nextMs, fetching.dueMs);
    }
    if (nextMs < Infinity) this.#askAgainIn(nextMs - nowMs);
    for (const fetching of overdue) {
      const isPatient = nowMs < fetching.patientUntilMs;
      if (!isPatient) fetching.copies++;
      this.#attempt(fetching, isPatient);
    }
  }

  #askAgainIn(delayMs: number): void {
    this.#timer ??= this.#context.timer(delayMs, () => this.#askAgain());
  }

  async #failed(fetching: Fetching, error: unknown): Promise<void> {
    if (!isTransient(error)) {
      // The failure is this request's result, so a later request acknowledges it like an answer.
      this.#settle(fetching);
      return fetching.reject(error);
    }
    const { onFailure, onUnreachable, whenBack } = this.#options;
    const isUnreachable = error.code === "unavailable";
    if (isUnreachable) onUnreachable?.(error);
    onFailure?.(error);
    fetching.dueMs = Infinity;
    fetching.copies = 0;
    await this.#pause(fetching.attempts - 1);
    if (isUnreachable) await whenBack?.();
    if (this.#open.has(fetching)) this.#attempt(fetching);
  }

  /** Ends a request. Returns whether it was open. */
  #settle(fetching: Fetching): boolean {
    if (!this.#open.delete(fetching)) return false;
    this.#answered.add(fetching.sequence);
    while (this.#answered.delete(this.#acknowledged + 1)) this.#acknowledged++;
    // The held requests are the newest ones, in order.
    while (this.#held.length > 0 && this.#sequence - this.#held.length < this.#reach) {
      this.#attempt(this.#held.shift()!);
    }
    return true;
  }

  #pause(failures: number): Promise<void> {
    const delayMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(failures, 20));
    return new Promise((resolve) => {
      this.#context.timer(delayMs * (0.5 + this.#context.random.next() / 2), resolve);
    });
  }
}

/** Whether the source may answer if the request is repeated, which this reader has not cancelled. */
function isTransient(error: unknown): error is LeatError {
  return error instanceof LeatError &&
    (error.code === "deadline_exceeded" || error.code === "cancelled" || mayBeTakenLater(error));
}

function stoppedError(): LeatError {
  return new LeatError("cancelled", "The client has stopped reading");
}

/**
 * Whether a failed fetch means that the source is gone. A scheduler refuses rounds with the same
 * codes, so its readers look at the reason instead.
 */
export function isSourceGone({ code }: LeatError): boolean {
  return code === "not_found" || code === "failed_precondition";
}

/**
 * Turns a refusal into an answer. The answer is final unless the refusal concerns one element only.
 */
export function refusedAnswer(refusal: LeatError): ElementAnswer {
  const isOfElement = refusal.code === "aborted" || refusal.details?.["bytesMax"] !== undefined;
  const error = errorToKeep(refusal.toWire());
  return { kind: "error", error, ...(isOfElement ? {} : { isFinal: true }) };
}

const place = object({ sequence: count, split: count, index: count });
const element = instance(Payload);
const heldMs = optional(duration);
const skipped = optional(count);

/** Checks the shape of an answer to `getElement`: a source is not trusted (see SECURITY.md). */
const known = answerCheckOf<ElementAnswer>(
  "getElement",
  oneKindOf(
    object({ kind: kind("element"), element, place: optional(place), heldMs, skipped }),
    object({
      kind: kind("error"),
      error: wireError,
      place: optional(place),
      isFinal: optional(flag),
      skipped,
    }),
    object({ kind: kind("remainder"), element, place, heldMs }),
    object({ kind: kind("passed"), place, count }),
    object({ kind: kind("split_end"), place }),
    object({ kind: kind("later"), from: optional(count) }),
    object({ kind: kind("end") }),
    object({ kind: kind("skip") }),
  ),
);

/**
 * A copy of an answer that keeps no larger message in memory: the training loop may take it much
 * later.
 * @throws {LeatError} `invalid_argument` for a malformed answer.
 */
function answerToKeep(received: unknown, node: string): ElementAnswer {
  const answer = known(received, node);
  if (answer.kind === "error") return { ...answer, error: errorToKeep(answer.error) };
  if (answer.kind !== "element" && answer.kind !== "remainder") return answer;
  const element = answer.element.toKeep();
  return element === answer.element ? answer : { ...answer, element };
}

/** A copy with a bounded size: `details` may be views of a whole received message. */
function errorToKeep(error: WireError): WireError {
  const { code, message, details, cause } = error;
  if (details === undefined && cause === undefined) return { code, message };
  try {
    const message = encodeMessage(error, { bytesMax: ERROR_BYTES_MAX });
    return decodeMessage(message, { structureBytesMax: ERROR_BYTES_MAX }) as WireError;
  } catch {
    return { code, message };
  }
}
