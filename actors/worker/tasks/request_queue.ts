/**
 * Requests that wait for an element, served one client after the other, in turns. A client
 * without a request keeps its place in the order for a while: it may be asking other tasks.
 */
import type { ReaderId } from "../../exactly_once/repeats.ts";
import type { ElementAnswer } from "../protocol.ts";

export interface Waiting {
  readonly reader: ReaderId;
  readonly answer: PromiseWithResolvers<ElementAnswer>;
}

/** After this many elements for others, a client without a request loses its place at the front. */
const PASSED_MAX = 16;

/** A client's place in the order, and its requests. */
interface ClientRequests {
  readonly requests: Set<Waiting>;
  /** How many elements others got while the client had its turn and no request. */
  passed: number;
}

/** The requests of a client are served in the order in which they came. */
export class RequestQueue {
  /** Clients in the order in which they are served next. */
  readonly #byClient = new Map<ReaderId, ClientRequests>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(waiting: Waiting): void {
    const client = this.#byClient.get(waiting.reader);
    if (client === undefined) {
      this.#byClient.set(waiting.reader, { requests: new Set([waiting]), passed: 0 });
    } else client.requests.add(waiting);
    this.#length++;
  }

  shift(): Waiting | undefined {
    if (this.#length === 0) return undefined;
    for (const [reader, client] of this.#byClient) {
      const { requests } = client;
      const [first] = requests;
      if (first === undefined) {
        if (++client.passed === PASSED_MAX) this.#byClient.delete(reader);
        continue;
      }
      // A client with more requests goes to the end of the order.
      this.#byClient.delete(reader);
      requests.delete(first);
      if (requests.size > 0) this.#byClient.set(reader, { requests, passed: 0 });
      this.#length--;
      return first;
    }
    return undefined;
  }

  /** Removes a request; its client keeps its place in the order. Returns whether it was waiting. */
  delete(waiting: Waiting): boolean {
    if (this.#byClient.get(waiting.reader)?.requests.delete(waiting) !== true) return false;
    this.#length--;
    return true;
  }

  leave(reader: ReaderId): Waiting[] {
    const requests = [...this.#byClient.get(reader)?.requests ?? []];
    this.#byClient.delete(reader);
    this.#length -= requests.length;
    return requests;
  }
}
