/**
 * Checks what is given under a static policy: each worker gives its own share, in its order, and
 * begins it anew in a new life alone.
 *
 * @module
 */
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import type { RequestOf } from "../../actors/runtime/protocol.ts";
import type { Findings } from "./checker.ts";

/** Watches one iteration. Elements are numbers, and no two are the same. */
export class SharesChecker {
  readonly #shares: readonly (readonly number[])[];
  /** Of each share, whether each life of its worker has said that it has made all of it. */
  readonly #isMade: boolean[][];
  readonly #findings: Findings;
  readonly #places = new Map<number, { readonly share: number; readonly place: number }>();
  readonly #times = new Map<number, number>();
  /** Of each consumer and share, the place that it was given last. */
  readonly #last = new Map<string, number>();
  /** Of each consumer and share, how often it began anew. */
  readonly #anew = new Map<string, number>();

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

  /** Elements delivered so far, repetitions not counted. */
  get delivered(): number {
    return this.#times.size;
  }

  /** A life of a share's worker begins. Give the answer to `ActorSystem.inspect` of its node. */
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

  /** A training loop was given an element. */
  took(element: number, consumer: string): void {
    const at = this.#places.get(element);
    if (at === undefined) {
      return this.#findings.add(`${consumer} took ${element}, which is in nobody's share`);
    }
    const times = (this.#times.get(element) ?? 0) + 1;
    this.#times.set(element, times);
    const lives = this.#isMade[at.share]!.length;
    if (times > lives) {
      this.#findings.add(
        `${consumer} took ${element} of share ${at.share} for the ${times}th time, of a worker ` +
          `that is in its ${lives}th life`,
      );
    }
    this.#follows(at, consumer, lives);
  }

  /**
   * Everything is over, and nothing was lost at a consumer. What a worker had made all of is not made
   * again, also if it died before all of that was fetched.
   */
  expectAll(): void {
    for (const [share, elements] of this.#shares.entries()) {
      if (this.#isMade[share]!.slice(0, -1).includes(true)) continue;
      const missing = elements.filter((element) => !this.#times.has(element));
      if (missing.length === 0) continue;
      this.#findings.add(`of share ${share} these never came: ${missing.join(", ")}`);
    }
  }

  /** Within a life of its worker a share comes in its order. */
  #follows(
    { share, place }: { readonly share: number; readonly place: number },
    consumer: string,
    lives: number,
  ): void {
    const key = `${consumer} ${share}`;
    const last = this.#last.get(key) ?? -1;
    this.#last.set(key, place);
    if (place > last) return;
    const anew = (this.#anew.get(key) ?? 0) + 1;
    this.#anew.set(key, anew);
    if (anew < lives) return;
    this.#findings.add(
      `${consumer} took place ${place} of share ${share} after ${last}, though its worker is in ` +
        `its ${lives}th life`,
    );
  }
}

type HeartbeatRequest = RequestOf<DispatcherProtocol, "workerHeartbeat">;
