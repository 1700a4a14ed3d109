/**
 * The asking side of an element source: numbers requests, acknowledges answers, and asks again for
 * what was lost on the way. Used by clients, and by the cache and the scheduler towards their task.
 *
 * @module
 */
import { Ending } from "../../core/ending.ts";
import { LeatError } from "../../core/error.ts";
import type { ActorContext } from "../runtime/actor.ts";
import { mayBeTakenLater } from "../runtime/asks.ts";
import type { Ref } from "../runtime/ref.ts";
import type {
  ElementAnswer,
  ElementSourceProtocol,
  GetElementRequest,
} from "../worker/protocol.ts";

/** Delay before asking a source again that could not be reached; doubles up to the maximum. */
const RETRY_MIN_MS = 20;
const RETRY_MAX_MS = 1_000;

/** For how many times the time after which it is asked again an answer still counts. */
const LATE_TIMES = 10;

/** Who asks, and how patiently. */
export interface ElementFetcherOptions {
  readonly clientId: number;
  readonly trainerId?: string;
  readonly consumerIndex?: number;
  /** How long one request may stay open before it is asked again, in ms. */
  readonly requestTimeoutMs: number;
  /** Called when the source could not be reached; fetching goes on until `stop()`. */
  readonly onUnreachable?: (error: LeatError) => void;
  /** Settles when a source that could not be reached is to be asked again. Default: after a while. */
  readonly whenBack?: () => Promise<void>;
}

/** Which element is wanted, where not any will do, and what is said with it. */
export type Wanted = Omit<
  GetElementRequest,
  "clientId" | "sequence" | "acknowledged" | "trainerId" | "consumerIndex"
>;

/** Fetches elements from one source, exactly once each. */
export class ElementFetcher {
  readonly source: Ref<ElementSourceProtocol>;
  readonly #context: ActorContext;
  readonly #options: ElementFetcherOptions;
  readonly #answered = new Set<number>();
  readonly #ending = new Ending();
  #sequence = 0;
  #acknowledged = 0;
  #stopped = false;

  constructor(
    context: ActorContext,
    source: Ref<ElementSourceProtocol>,
    options: ElementFetcherOptions,
  ) {
    this.#context = context;
    this.source = source;
    this.#options = options;
  }

  /** Whether the source has answered at all. */
  get hasAnswered(): boolean {
    return this.#acknowledged > 0 || this.#answered.size > 0;
  }

  /**
   * The next element of this client. Calls may overlap; each asks for an element of its own.
   *
   * @throws LeatError `not_found` or `failed_precondition` when the source is gone for good,
   * `cancelled` after `stop()`.
   */
  async fetch(wanted: Wanted = {}): Promise<ElementAnswer> {
    const sequence = ++this.#sequence;
    const answered = Promise.withResolvers<ElementAnswer>();
    for (let failures = 0;; failures++) {
      if (this.#stopped) throw stoppedError();
      try {
        const answer = await this.#ending.before(this.#attempt(sequence, wanted, answered));
        this.#acknowledge(sequence);
        return answer;
      } catch (error) {
        if (this.#stopped) throw stoppedError();
        if (!isTransient(error)) {
          // The failure is what came of it: the source need not keep it, nor what it could not send.
          this.#acknowledge(sequence);
          throw error;
        }
        if (error.code === "unavailable") this.#options.onUnreachable?.(error);
        if (error.code !== "deadline_exceeded") await this.#ending.before(this.#pause(failures));
        const { whenBack } = this.#options;
        if (error.code === "unavailable" && whenBack !== undefined) {
          await this.#ending.before(whenBack());
        }
      }
    }
  }

  /** Ends all fetching: open calls are rejected with `cancelled`. */
  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#ending.come(stoppedError());
  }

  /** Stops, and tells the source to keep nothing for this client. */
  leave(): void {
    this.stop();
    const { clientId, consumerIndex } = this.#options;
    this.#context.tell(this.source, "leave", {
      clientId,
      ...(consumerIndex === undefined ? {} : { consumerIndex }),
    });
  }

  /**
   * Asks once, and waits for a while. An answer to an attempt before counts as well: it may hold the
   * only copy of the element, which was moved to this thread while the thread had no time for it.
   */
  async #attempt(
    sequence: number,
    wanted: Wanted,
    answered: PromiseWithResolvers<ElementAnswer>,
  ): Promise<ElementAnswer> {
    const asked = this.#ask(sequence, wanted);
    asked.then(answered.resolve, () => {});
    const late = Promise.withResolvers<never>();
    const timer = this.#context.timer(this.#options.requestTimeoutMs, () => {
      late.reject(
        new LeatError("deadline_exceeded", "The element takes long; it is asked for again"),
      );
    });
    try {
      return await Promise.race([answered.promise, asked, late.promise]);
    } finally {
      timer.cancel();
    }
  }

  #ask(sequence: number, wanted: Wanted): Promise<ElementAnswer> {
    const { clientId, trainerId, consumerIndex, requestTimeoutMs } = this.#options;
    const request: GetElementRequest = {
      clientId,
      sequence,
      acknowledged: this.#acknowledged,
      ...(trainerId === undefined ? {} : { trainerId }),
      ...(consumerIndex === undefined ? {} : { consumerIndex }),
      ...wanted,
    };
    return this.#context.ask(this.source, "getElement", request, {
      timeoutMs: LATE_TIMES * requestTimeoutMs,
    });
  }

  #acknowledge(sequence: number): void {
    this.#answered.add(sequence);
    while (this.#answered.delete(this.#acknowledged + 1)) this.#acknowledged++;
  }

  #pause(failures: number): Promise<void> {
    const delayMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(failures, 20));
    return new Promise((resolve) => {
      this.#context.timer(delayMs * (0.5 + this.#context.random.next() / 2), resolve);
    });
  }
}

/** Whether asking the same source again may succeed. */
function isTransient(error: unknown): error is LeatError {
  return error instanceof LeatError &&
    (error.code === "deadline_exceeded" || mayBeTakenLater(error));
}

function stoppedError(): LeatError {
  return new LeatError("cancelled", "The client has stopped reading");
}
