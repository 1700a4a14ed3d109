/**
 * Requests of tasks that cannot be answered yet. Each ends with an answer, with an error when its
 * task ends, or at its deadline.
 */
import { LeatError } from "../../../core/error.ts";
import { Fifo } from "../../../core/fifo.ts";

interface WaitingRequest<A> {
  /** When its sender gives up, in monotonic ms. */
  readonly deadlineMs: number;
  /** Whether the request can be answered now. */
  readonly isAnswerable: () => boolean;
  /** Handles the request and returns the answer. If this throws, the error is the answer. */
  readonly answer: () => A | Promise<A>;
}

interface Waiter extends WaitingRequest<unknown> {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** The waiting requests per iteration, checked in order of arrival. */
export class WaitingRequests {
  readonly #ofIteration = new Map<number, Fifo<Waiter>>();
  readonly #waitingMax: number;
  readonly #nowMs: () => number;

  /** @param waitingMax Limit of the waiting requests per iteration. */
  constructor(waitingMax: number, nowMs: () => number) {
    this.#waitingMax = waitingMax;
    this.#nowMs = nowMs;
  }

  /**
   * Waits for the answer.
   * @throws {LeatError} `resource_exhausted` if too many wait, `deadline_exceeded` at the deadline,
   *   and what `answer` throws.
   */
  wait<A>(iterationId: number, request: WaitingRequest<A>): Promise<A> {
    const waiting = this.#ofIteration.get(iterationId) ?? new Fifo<Waiter>();
    if (waiting.length >= this.#waitingMax) {
      throw new LeatError(
        "resource_exhausted",
        `${this.#waitingMax} requests already wait for work of iteration ${iterationId}; ask again later`,
      );
    }
    this.#ofIteration.set(iterationId, waiting);
    return new Promise((resolve, reject) => {
      waiting.push({ ...request, resolve: resolve as Waiter["resolve"], reject });
    });
  }

  /** Answers the waiting requests of an iteration that can be answered now. */
  settle(iterationId: number): void {
    this.#look(iterationId, ({ isAnswerable }) => isAnswerable());
  }

  /** Rejects requests whose deadline has passed: a split assigned to them would reach nobody. */
  expire(): void {
    for (const iterationId of this.#ofIteration.keys()) this.#look(iterationId, () => false);
  }

  /** Rejects all waiting requests of all iterations. */
  rejectAll(error: LeatError): void {
    for (const waiting of this.#ofIteration.values()) {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        next.reject(error);
      }
    }
    this.#ofIteration.clear();
  }

  #look(iterationId: number, isAnswerable: (waiter: Waiter) => boolean): void {
    const waiting = this.#ofIteration.get(iterationId);
    if (waiting === undefined) return;
    const nowMs = this.#nowMs();
    for (let left = waiting.length; left > 0; left--) {
      const waiter = waiting.shift();
      // An answer may have called `settle`, which has then handled the other waiters.
      if (waiter === undefined) break;
      if (waiter.deadlineMs <= nowMs) waiter.reject(expired());
      else if (isAnswerable(waiter)) answer(waiter);
      else waiting.push(waiter);
    }
    if (waiting.length === 0) this.#ofIteration.delete(iterationId);
  }
}

function answer({ answer, resolve, reject }: Waiter): void {
  try {
    resolve(answer());
  } catch (error) {
    reject(error);
  }
}

function expired(): LeatError {
  return new LeatError("deadline_exceeded", "There was no work before the request's deadline");
}
