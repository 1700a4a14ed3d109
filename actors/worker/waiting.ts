/**
 * Requests that wait for an element. Clients have turns: one that has many requests open, or has begun
 * before the others, gets no more of what is scarce than they do. One that asks elsewhere meanwhile, and
 * comes back, keeps its turn: an element may take longer than it may wait, and it would come last for ever.
 *
 * @module
 */
import type { ElementAnswer } from "./protocol.ts";

/** A request that waits for an element. */
export interface Waiting {
  readonly clientId: number;
  readonly answer: PromiseWithResolvers<ElementAnswer>;
}

/** Elements that others get in a client's turn, as it does not wait, before it has none any more. */
const PASSED_MAX = 16;

/** A client's turn, and its requests. */
interface Turn {
  readonly requests: Set<Waiting>;
  passed: number;
}

/** See the module. The requests of a client are served in the order in which they came. */
export class WaitingRequests {
  /** By client, whose turn is next first. */
  readonly #byClient = new Map<number, Turn>();
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

  /** It waits no more, and its client keeps its turn; answers whether it did wait. */
  delete(waiting: Waiting): boolean {
    if (this.#byClient.get(waiting.clientId)?.requests.delete(waiting) !== true) return false;
    this.#length--;
    return true;
  }

  /** Those of one client wait no more. */
  leave(clientId: number): Waiting[] {
    const requests = [...this.#byClient.get(clientId)?.requests ?? []];
    this.#byClient.delete(clientId);
    this.#length -= requests.length;
    return requests;
  }
}
