/**
 * Checks that the elements that tasks make reach training loops. No element is delivered more often
 * than it was made. All elements of living workers are delivered, except those that dead clients had
 * requested.
 */
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import { formatRef } from "../../actors/runtime/ref.ts";
import type { ElementAnswer, GetElementRequest } from "../../actors/worker/protocol.ts";
import type { Findings } from "./checker.ts";
import { elementOf } from "./failing_elements.ts";

/** Whether a life of a node still lasts. */
type GoesOn = () => boolean;

interface Worker {
  readonly goesOn: GoesOn;
  /** How often its tasks have made each element. */
  readonly made: Map<string, number>;
}

/** Watches one iteration. Elements are texts. Several tasks may make the same element. */
export class HandoverChecker {
  readonly #findings: Findings;
  readonly #workers: Worker[] = [];
  readonly #consumers: HandedOver[] = [];
  /** How often each element was made and received. */
  readonly #made = new Map<string, number>();
  readonly #taken = new Map<string, number>();

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** Whether any task has made that element. */
  wasMade(element: string): boolean {
    return this.#made.has(element);
  }

  /** Registers a life of a worker. Returns a function to call with each element that its tasks make. */
  worker(goesOn: GoesOn): (element: string) => void {
    const made = new Map<string, number>();
    this.#workers.push({ goesOn, made });
    return (element) => {
      add(made, element);
      add(this.#made, element);
    };
  }

  /** Registers a life of a consumer. */
  consumer(name: string, goesOn: GoesOn): HandedOver {
    const consumer = new HandedOver(goesOn, (element) => {
      const times = add(this.#taken, element);
      const made = this.#made.get(element) ?? 0;
      if (times <= made) return;
      this.#findings.add(
        `${name} took ${element} for the ${times}th time, which was made ${made} times`,
      );
    });
    this.#consumers.push(consumer);
    return consumer;
  }

  /**
   * Checks at the end that no element is missing without a reason. Each request of a client gets at most
   * one element, so a dead client may have lost one element per request that it had not received.
   */
  expectAll(): void {
    const living = new Map<string, number>();
    for (const { goesOn, made } of this.#workers) {
      if (goesOn()) { for (const [element, times] of made) add(living, element, times); }
    }
    const missing = living.entries().map(([element, made]) => ({
      element,
      times: made - (this.#taken.get(element) ?? 0),
    })).filter(({ times }) => times > 0).toArray();
    const missingCount = missing.reduce((sum, { times }) => sum + times, 0);
    const dead = this.#consumers.filter(({ goesOn }) => !goesOn());
    const requested = dead.reduce((sum, { owed }) => sum + owed, 0);
    if (missingCount <= requested) return;
    const texts = missing.slice(0, 10).map(({ element }) => element);
    this.#findings.add(
      `${missingCount} elements that living workers have made never came, and dead clients had asked ` +
        `for ${requested}: ${texts.join(", ")}`,
    );
  }
}

/** The requests and elements of one life of a consumer. */
class HandedOver {
  readonly goesOn: GoesOn;
  readonly #onTaken: (element: string) => void;
  /** The requests, by the asker's incarnation and the ask's id. */
  readonly #requestOf = new Map<string, string>();
  /** Requests that may have received an element. */
  readonly #requests = new Set<string>();
  #taken = 0;

  constructor(goesOn: GoesOn, onTaken: (element: string) => void) {
    this.goesOn = goesOn;
    this.#onTaken = onTaken;
  }

  /** Maximum number of elements that were sent to it but that it did not receive. */
  get owed(): number {
    return Math.max(0, this.#requests.size - this.#taken);
  }

  /** An observer for `ActorSystem.inspect` of its node. */
  readonly observe = (event: InspectionEvent): void => {
    if (event.type === "send" && event.envelope.kind === "ask") {
      const { source, target, id, method, body } = event.envelope;
      if (method !== "getElement") return;
      const request = `${formatRef(target)} ${(body as GetElementRequest).sequence}`;
      this.#requestOf.set(`${source.incarnation} ${id}`, request);
      this.#requests.add(request);
    } else if (event.type === "deliver" && event.envelope.kind === "reply") {
      const { target, id, body } = event.envelope;
      const request = this.#requestOf.get(`${target.incarnation} ${id}`);
      if (request === undefined || elementOf(body as ElementAnswer) !== undefined) return;
      this.#requests.delete(request);
    }
  };

  /** Records that its training loop received an element. */
  took(element: string): void {
    this.#taken++;
    this.#onTaken(element);
  }
}

function add(counts: Map<string, number>, what: string, times = 1): number {
  const count = (counts.get(what) ?? 0) + times;
  counts.set(what, count);
  return count;
}
