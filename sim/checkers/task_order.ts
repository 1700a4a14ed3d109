/**
 * Checks that what one task gives to one training loop comes in the order in which the task makes it,
 * however many requests are under way and whatever becomes of them.
 *
 * @module
 */
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import { formatRef } from "../../actors/runtime/ref.ts";
import { Payload } from "../../transport/payload.ts";
import type { Findings } from "./checker.ts";

/** Watches tasks that make numbers, each more than the one before. */
export class TaskOrderChecker {
  readonly #findings: Findings;
  /** Which life of a task has sent what was delivered. */
  readonly #senders = new WeakMap<Payload, string>();
  /** What each consumer was given last, by the life of the task that it is of. */
  readonly #last = new Map<string, Map<string, number>>();

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** Give this to `ActorSystem.inspect` of each life of a consumer's node. */
  readonly observe = (event: InspectionEvent): void => {
    if (event.type !== "deliver" || event.envelope.kind !== "reply") return;
    const { source, body } = event.envelope;
    const { element } = body as { readonly element?: unknown } | null ?? {};
    if (element instanceof Payload) this.#senders.set(element, formatRef(source));
  };

  /** A training loop has taken the number that came as this payload. */
  took(payload: Payload, number: number, consumer: string): void {
    const task = this.#senders.get(payload);
    if (task === undefined) {
      return this.#findings.add(`${consumer} took ${number}, which nobody has sent it`);
    }
    const lasts = this.#last.get(consumer) ?? new Map<string, number>();
    this.#last.set(consumer, lasts);
    const last = lasts.get(task) ?? -Infinity;
    lasts.set(task, number);
    if (number > last) return;
    this.#findings.add(`${consumer} took ${number} of ${task} after ${last}`);
  }
}
