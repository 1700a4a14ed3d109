/**
 * Requests that wait for an element. Clients have turns: one that has many requests open, or has begun
 * before the others, gets no more of what is scarce than they do.
 *
 * @module
 */
import type { ElementAnswer } from "./protocol.ts";

/** A request that waits for an element. */
export interface Waiting {
  readonly clientId: number;
  readonly answer: PromiseWithResolvers<ElementAnswer>;
}

/** See the module. The requests of a client are served in the order in which they came. */
export class WaitingRequests {
  /** By client, whose turn is next first. */
  readonly #byClient = new Map<number, Set<Waiting>>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(waiting: Waiting): void {
    const requests = this.#byClient.get(waiting.clientId);
    if (requests === undefined) this.#byClient.set(waiting.clientId, new Set([waiting]));
    else requests.add(waiting);
    this.#length++;
  }

  /** The next to be served. */
  shift(): Waiting | undefined {
    for (const [clientId, requests] of this.#byClient) {
      const [first] = requests;
      // Behind the others, if it wants more.
      this.#byClient.delete(clientId);
      requests.delete(first!);
      if (requests.size > 0) this.#byClient.set(clientId, requests);
      this.#length--;
      return first;
    }
    return undefined;
  }

  /** It waits no more; answers whether it did. */
  delete(waiting: Waiting): boolean {
    const { clientId } = waiting;
    const requests = this.#byClient.get(clientId);
    if (requests?.delete(waiting) !== true) return false;
    if (requests.size === 0) this.#byClient.delete(clientId);
    this.#length--;
    return true;
  }

  /** Those of one client wait no more. */
  leave(clientId: number): Waiting[] {
    const requests = [...this.#byClient.get(clientId) ?? []];
    this.#byClient.delete(clientId);
    this.#length -= requests.length;
    return requests;
  }
}
