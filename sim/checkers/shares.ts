/**
 * Checks deliveries under a static policy. Each worker produces its own share, in order, and starts it
 * again only in a new life. Each of its tasks sends an element once, to one consumer.
 */
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import type { RequestOf } from "../../actors/runtime/protocol.ts";
import { formatRef } from "../../actors/runtime/ref.ts";
import type { ElementAnswer } from "../../actors/worker/protocol.ts";
import { elementOf } from "./failing_elements.ts";
import type { Findings } from "./checker.ts";

/** Watches one iteration. Elements are different numbers. */
export class SharesChecker {
  readonly #shares: readonly (readonly number[])[];
  /** For each share and each life of its worker, whether it reported the share as complete. */
  readonly #isMade: boolean[][];
  readonly #findings: Findings;
  readonly #places = new Map<number, { readonly share: number; readonly place: number }>();
  readonly #times = new Map<number, number>();
  /** The tasks, with their incarnations, that have sent each element to a consumer. */
  readonly #senders = new Map<number, Set<string>>();
  /** The tasks, with their incarnations, that have sent elements of a share, by consumer and share. */
  readonly #tasks = new Map<string, Set<string>>();
  /** The last position delivered, by consumer and share. */
  readonly #last = new Map<string, number>();
  /** How often the share started again, by consumer and share. */
  readonly #restarts = new Map<string, number>();

  constructor(shares: readonly (readonly number[])[], findings: Findings) {
    this.#shares = shares;
    this.#isMade = shares.map(() => []);
    this.#findings = findings;
    for (const [share, elements] of shares.entries()) {
      for (const [place, element] of elements.entries()) {
        this.#places.set(element, { share, place });
      }
    }
  }

  /** Number of different elements delivered so far. */
  get delivered(): number {
    return this.#times.size;
  }

  /** Registers a life of a share's worker. Pass the result to `ActorSystem.inspect` of its node. */
  life(share: number): (event: InspectionEvent) => void {
    const isMade = this.#isMade[share] ?? [];
    const life = isMade.push(false) - 1;
    return (event) => {
      if (event.type !== "send" || event.envelope.kind !== "ask") return;
      if (event.envelope.method !== "workerHeartbeat") return;
      const { tasks } = event.envelope.body as HeartbeatRequest;
      if (tasks.some(({ completed }) => completed)) isMade[life] = true;
    };
  }

  /** Registers a consumer. Pass the result to `ActorSystem.inspect` of its node. */
  consumer(consumer: string): (event: InspectionEvent) => void {
    return (event) => {
      if (event.type !== "deliver" || event.envelope.kind !== "reply") return;
      const { source, body } = event.envelope;
      const element = elementOf(body as ElementAnswer | null);
      if (element !== undefined) this.#sent(Number(element), formatRef(source), consumer);
    };
  }

  /** Records that a training loop received an element. */
  took(element: number, consumer: string): void {
    const at = this.#places.get(element);
    if (at === undefined) {
      return this.#findings.add(`${consumer} took ${element}, which is in no share`);
    }
    const times = (this.#times.get(element) ?? 0) + 1;
    this.#times.set(element, times);
    const lives = this.#isMade[at.share]!.length;
    const timesMax = Math.min(lives, this.#senders.get(element)?.size ?? 0);
    if (times > timesMax) {
      this.#findings.add(
        `${consumer} took ${element} of share ${at.share} for the ${times}th time, which ${timesMax} ` +
          `tasks have sent, of a worker that is in its ${lives}th life`,
      );
    }
    this.#follows(at, consumer);
  }

  /**
   * Checks at the end that every element was delivered, if no consumer lost any. A share that a worker
   * completed is not made again, even if the worker died before clients fetched all of it.
   */
  expectAll(): void {
    for (const [share, elements] of this.#shares.entries()) {
      if (this.#isMade[share]!.slice(0, -1).includes(true)) continue;
      const missing = elements.filter((element) => !this.#times.has(element));
      if (missing.length === 0) continue;
      this.#findings.add(`of share ${share} these never came: ${missing.join(", ")}`);
    }
  }

  #sent(element: number, task: string, consumer: string): void {
    const share = this.#places.get(element)?.share;
    this.#senders.getOrInsertComputed(element, () => new Set()).add(task);
    this.#tasks.getOrInsertComputed(`${consumer} ${share}`, () => new Set()).add(task);
  }

  /** Checks that a share is in order, and starts again only if another task has sent elements of it. */
  #follows(
    { share, place }: { readonly share: number; readonly place: number },
    consumer: string,
  ): void {
    const key = `${consumer} ${share}`;
    const last = this.#last.get(key) ?? -1;
    this.#last.set(key, place);
    if (place > last) return;
    const restarts = (this.#restarts.get(key) ?? 0) + 1;
    this.#restarts.set(key, restarts);
    const tasks = this.#tasks.get(key)?.size ?? 0;
    if (restarts < tasks) return;
    this.#findings.add(
      `${consumer} took place ${place} of share ${share} after ${last}, though only ${tasks} tasks ` +
        `have sent it elements of that share`,
    );
  }
}

type HeartbeatRequest = RequestOf<DispatcherProtocol, "workerHeartbeat">;
