/**
 * Checks that a training loop receives the elements of a task in the order in which the task makes
 * them, however many requests are in flight and whatever happens to them.
 */
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import { formatRef } from "../../actors/runtime/ref.ts";
import { Payload } from "../../transport/payload.ts";
import type { Findings } from "./checker.ts";

/** Watches tasks that make increasing numbers. */
export class TaskOrderChecker {
  readonly #findings: Findings;
  /** The task, with its incarnation, that sent each payload. */
  readonly #senders = new WeakMap<Payload, string>();
  /** The last number that each consumer received, by task and its incarnation. */
  readonly #last = new Map<string, Map<string, number>>();

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** An observer for `ActorSystem.inspect` of each life of a consumer's node. */
  readonly observe = (event: InspectionEvent): void => {
    if (event.type !== "deliver" || event.envelope.kind !== "reply") return;
    const { source, body } = event.envelope;
    const { element } = body as { readonly element?: unknown } | null ?? {};
    if (element instanceof Payload) this.#senders.set(element, formatRef(source));
  };

  /** Records that a training loop received the number that arrived as this payload. */
  took(payload: Payload, number: number, consumer: string): void {
    const task = this.#senders.get(payload);
    if (task === undefined) {
      return this.#findings.add(`${consumer} took ${number}, which no task sent it`);
    }
    const lasts = this.#last.get(consumer) ?? new Map<string, number>();
    this.#last.set(consumer, lasts);
    const last = lasts.get(task) ?? -Infinity;
    lasts.set(task, number);
    if (number > last) return;
    this.#findings.add(`${consumer} took ${number} of ${task} after ${last}`);
  }
}
