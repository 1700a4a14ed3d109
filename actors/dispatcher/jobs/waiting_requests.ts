/**
 * Requests of tasks that cannot be answered yet, each until it can be, its task has ended, or its asker
 * waits no longer.
 *
 * @module
 */
import { LeatError } from "../../../core/error.ts";
import { Fifo } from "../../runtime/fifo.ts";

/** A request that waits. */
export interface WaitingRequest<A> {
  /** When its asker stops waiting, on the monotonic clock in ms. */
  readonly deadlineMs: number;
  /** Whether it need wait no longer. */
  readonly isAnswerable: () => boolean;
  /** Decides on it. What it throws is the answer. */
  readonly answer: () => A | Promise<A>;
}

interface Waiter extends WaitingRequest<unknown> {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** See the module. They are asked in the order in which they came, by iteration. */
export class WaitingRequests {
  readonly #ofIteration = new Map<number, Fifo<Waiter>>();
  readonly #waitingMax: number;
  readonly #nowMs: () => number;

  /** @param waitingMax So many may wait for one iteration. */
  constructor(waitingMax: number, nowMs: () => number) {
    this.#waitingMax = waitingMax;
    this.#nowMs = nowMs;
  }

  /**
   * The answer, when there is one.
   *
   * @throws {LeatError} `resource_exhausted` where too many wait, `deadline_exceeded` for one whose asker
   * has given up, and what its decision throws.
   */
  wait<A>(iterationId: number, request: WaitingRequest<A>): Promise<A> {
    const waiting = this.#ofIteration.get(iterationId) ?? new Fifo<Waiter>();
    if (waiting.length >= this.#waitingMax) {
      throw new LeatError(
        "resource_exhausted",
        `${this.#waitingMax} requests wait for what there is to do in iteration ${iterationId}; ask again later`,
      );
    }
    this.#ofIteration.set(iterationId, waiting);
    return new Promise((resolve, reject) => {
      waiting.push({ ...request, resolve: resolve as Waiter["resolve"], reject });
    });
  }

  /** Something has changed for an iteration: those that need not wait any more are answered. */
  settle(iterationId: number): void {
    this.#look(iterationId, ({ isAnswerable }) => isAnswerable());
  }

  /** Lets go of those whose askers have given up: nobody would take what they got. */
  expire(): void {
    for (const iterationId of this.#ofIteration.keys()) this.#look(iterationId, () => false);
  }

  /** Refuses all of them. */
  refuse(error: LeatError): void {
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
      // What an answer has changed may have settled the others already.
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
  return new LeatError("deadline_exceeded", "There was nothing to do before the asker gave up");
}
