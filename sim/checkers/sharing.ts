/**
 * Checks ephemeral data sharing. Each trainer receives a subsequence of each worker's stream, in order
 * and without duplicates. It misses nothing that was still in the window. It starts at the back of the
 * window, or after an absence at its old position. Windows stay within their bounds.
 */
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import type { RequestOf } from "../../actors/runtime/protocol.ts";
import type { Ref } from "../../actors/runtime/ref.ts";
import type { ElementAnswer } from "../../actors/worker/protocol.ts";
import { elementOf } from "./failing_elements.ts";
import type { Findings } from "./checker.ts";
import { type SharedElement, SharedOrderChecker } from "./shared_order.ts";

export type { SharedElement };

/** Minimum size at which an item counts in a window, in bytes. */
const ITEM_BYTES_MIN = 1_024;

/** The items that entered a worker's window. */
interface Stream {
  /** Bytes of all items up to a position, inclusive. */
  readonly sums: number[];
  /** Whether the worker's life that made the stream still lasts. */
  readonly lives: () => boolean;
}

/** The positions of a stream that were sent to a trainer, with the client that got each. */
interface Sent {
  readonly clients: Map<number, string>;
}

/** Watches all trainers of a job. */
export class SharingChecker {
  readonly #windowBytesMax: number;
  readonly #underWayMax: number;
  readonly #findings: Findings;
  readonly #streams = new Map<number, Stream>();
  readonly #order: SharedOrderChecker;
  /** Streams that a trainer has read since it joined, by trainer. */
  readonly #reading = new Map<string, Set<number>>();
  /** The elements sent to trainers, by trainer and stream. */
  readonly #sent = new Map<string, Sent>();
  #delivered = 0;
  #skipped = 0;

  /** @param underWayMax Maximum number of a trainer's requests in flight. */
  constructor(windowBytesMax: number, underWayMax: number, findings: Findings) {
    this.#windowBytesMax = windowBytesMax;
    this.#underWayMax = underWayMax;
    this.#findings = findings;
    this.#order = new SharedOrderChecker(findings);
  }

  /** Number of elements that training loops received. */
  get delivered(): number {
    return this.#delivered;
  }

  /** Number of elements that training loops missed while they were reading. */
  get skipped(): number {
    return this.#skipped;
  }

  /**
   * An observer for `ActorSystem.inspect` of a worker's node. @param lives Whether this life still
   * lasts.
   */
  observer(lives: () => boolean): (event: InspectionEvent) => void {
    return (event) => {
      if (event.type === "deliver" && event.envelope.kind === "reply") {
        const { target, body } = event.envelope;
        if (target.path.includes("/cache-")) this.#produces(body as ElementAnswer | null, lives);
      } else if (event.type === "send" && event.envelope.kind === "reply") {
        const { source, target, body } = event.envelope;
        if (source.path.includes("/cache-")) this.#sends(target, body as ElementAnswer | null);
      } else if (event.type === "send" && event.envelope.kind === "ask") {
        const { method, body } = event.envelope;
        if (method === "workerHeartbeat") this.#reports(body as HeartbeatRequest);
      }
    };
  }

  /**
   * Records that a trainer joins, possibly again. Elements that its previous client fetched may be lost.
   */
  joined(trainer: string): void {
    this.#reading.set(trainer, new Set());
  }

  /**
   * Records that a training loop received an element.
   * @param skipped Number of missed elements that were reported before it.
   */
  took(trainer: string, { stream, place }: SharedElement, skipped: number): void {
    this.#delivered++;
    const last = this.#order.took(trainer, { stream, place });
    const reading = this.#reading.get(trainer)!;
    const isFirst = !reading.has(stream);
    reading.add(stream);
    const before = isFirst ? this.#sentBefore(trainer, { stream, place }) : last;
    // A trainer's first client starts at the back of the window. `#sends` has checked that.
    if (before === undefined) return;
    const missed = place - before - 1;
    const what = `${trainer} took ${place} of stream ${stream} after ${before}`;
    // Elements in flight from a dead worker are lost.
    const unreported = missed - skipped - this.#sentToOthers(trainer, stream, before, place);
    if (unreported !== 0 && !this.#streams.get(stream)!.lives()) return;
    // Requests of the previous client may have reserved these positions, without a reply.
    if (unreported < 0 || unreported > (isFirst ? this.#underWayMax : 0)) {
      this.#findings.add(`${what}, and ${skipped} missed ones were reported`);
    }
    if (missed <= 0 || skipped === 0) return;
    this.#skipped += missed;
    const bytes = this.#bytesFrom(stream, place - 1);
    if (bytes > this.#windowBytesMax) return;
    this.#findings.add(
      `${what}, though the ${bytes} bytes from ${place - 1} on fit a window of ` +
        `${this.#windowBytesMax}`,
    );
  }

  /** Returns the last position before this one that was sent to earlier clients of the trainer. */
  #sentBefore(trainer: string, { stream, place }: SharedElement): number | undefined {
    const { clients } = this.#sent.get(`${trainer} ${stream}`)!;
    const client = clients.get(place)!;
    const others = [...clients].filter(([other, by]) => by !== client && other < place);
    return others.length === 0 ? undefined : Math.max(...others.map(([other]) => other));
  }

  /**
   * Returns how many items between two positions were sent to other clients of the trainer.
   */
  #sentToOthers(trainer: string, stream: number, before: number, place: number): number {
    const { clients } = this.#sent.get(`${trainer} ${stream}`)!;
    const client = clients.get(place)!;
    return [...clients].filter(([at, by]) => by !== client && at > before && at < place).length;
  }

  #sends({ node, incarnation }: Ref, answer: ElementAnswer | null): void {
    const element = elementOf(answer) as SharedElement | undefined;
    if (element === undefined) return;
    const { stream, place } = element;
    const key = `${node} ${stream}`;
    const sent = this.#sent.get(key);
    if (sent !== undefined) {
      if (!sent.clients.has(place)) sent.clients.set(place, incarnation!);
      return;
    }
    this.#sent.set(key, { clients: new Map([[place, incarnation!]]) });
    const since = this.#bytesFrom(stream, place - 1);
    if (place === 0 || since > this.#windowBytesMax) return;
    this.#findings.add(
      `${node} begins at ${place} of stream ${stream}, though the ${since} bytes from ${
        place - 1
      } ` +
        `on fit a window of ${this.#windowBytesMax}`,
    );
  }

  /** Returns the bytes that entered a stream's window from a position on. */
  #bytesFrom(stream: number, place: number): number {
    const { sums } = this.#streams.get(stream)!;
    return sums.at(-1)! - (sums[place - 1] ?? 0);
  }

  #produces(answer: ElementAnswer | null, lives: () => boolean): void {
    const element = elementOf(answer) as SharedElement | undefined;
    if (element === undefined) return;
    const { stream, place } = element;
    const byteLength = answer?.kind === "element" ? answer.element.bytes.byteLength : 0;
    if (!this.#streams.has(stream)) this.#streams.set(stream, { sums: [], lives });
    const { sums } = this.#streams.get(stream)!;
    // A repeated request got the same answer.
    if (place >= 0 && place === sums.length - 1) return;
    if (place !== sums.length) {
      this.#findings.add(`stream ${stream} gave its window ${place} after ${sums.length - 1}`);
    }
    sums.push((sums.at(-1) ?? 0) + Math.max(ITEM_BYTES_MIN, byteLength));
  }

  #reports({ name, tasks }: HeartbeatRequest): void {
    const held = tasks.reduce((sum, { sharing }) => sum + (sharing?.windowBytes ?? 0), 0);
    // Each window keeps its newest element, even if that is larger than its part.
    const bytesMax = Math.max(this.#windowBytesMax, tasks.length * ITEM_BYTES_MIN);
    if (held <= bytesMax) return;
    this.#findings.add(`${name} holds ${held} bytes, of ${bytesMax} for windows`);
  }
}

type HeartbeatRequest = RequestOf<DispatcherProtocol, "workerHeartbeat">;
