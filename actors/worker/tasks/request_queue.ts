/**
 * Requests that wait for an element, served round-robin by client, however many one has open. A
 * client that asks elsewhere keeps its place for a while, or it would always come last.
 */
import type { ElementAnswer } from "../protocol.ts";

export interface Waiting {
  readonly clientId: number;
  readonly answer: PromiseWithResolvers<ElementAnswer>;
}

/** Elements that others get before an absent client that is next loses its place. */
const PASSED_MAX = 16;

/** A client's place in the order, and its requests. */
interface Transaction {
  readonly requests: Set<Waiting>;
  passed: number;
}

/** The requests of a client are served in the order in which they came. */
export class RequestQueue {
  /** By client, the next to be served first. */
  readonly #byClient = new Map<number, Transaction>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(waiting: Waiting): void {
    const turn = this.#byClient.get(waiting.clientId);
    if (turn === undefined) {
      this.#byClient.set(waiting.clientId, { requests: new Set([waiting]), passed: 0 });
    } else turn.requests.add(waiting);
    this.#length++;
  }

  /** The next to be served. */
  shift(): Waiting | undefined {
    if (this.#length === 0) return undefined;
    for (const [clientId, turn] of this.#byClient) {
      const { requests } = turn;
      const [first] = requests;
      if (first === undefined) {
        if (++turn.passed === PASSED_MAX) this.#byClient.delete(clientId);
        continue;
      }
      // Behind the others, if it wants more.
      this.#byClient.delete(clientId);
      requests.delete(first);
      if (requests.size > 0) this.#byClient.set(clientId, { requests, passed: 0 });
      this.#length--;
      return first;
    }
    return undefined;
  }

  /** The request no longer waits; its client keeps its place. Returns whether it did wait. */
  delete(waiting: Waiting): boolean {
    if (this.#byClient.get(waiting.clientId)?.requests.delete(waiting) !== true) return false;
    this.#length--;
    return true;
  }

  leave(clientId: number): Waiting[] {
    const requests = [...this.#byClient.get(clientId)?.requests ?? []];
    this.#byClient.delete(clientId);
    this.#length -= requests.length;
    return requests;
  }
}
