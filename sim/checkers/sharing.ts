/**
 * Checks ephemeral data sharing: each trainer sees a subsequence of what each worker produces, in
 * order and nothing twice; it misses nothing that was still in the window; it begins at the back of
 * the window, and after it was away where it had been; and windows keep to their bounds.
 *
 * @module
 */
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import type { RequestOf } from "../../actors/runtime/protocol.ts";
import type { Ref } from "../../actors/runtime/ref.ts";
import type { ElementAnswer } from "../../actors/worker/protocol.ts";
import { decodeMessage } from "../../transport/codec.ts";
import type { Findings } from "./checker.ts";
import { type SharedElement, SharedOrderChecker } from "./shared_order.ts";

export type { SharedElement };

/** What anything in a window counts for at least, in bytes. */
const ITEM_BYTES_MIN = 1_024;

/** What came into a worker's window. */
interface Stream {
  /** The bytes of everything up to a place, that one included. */
  readonly sums: number[];
  /** Whether the worker is still in the life in which it made this. */
  readonly lives: () => boolean;
}

/** What a trainer was sent of a stream: which of its clients which place. */
interface Sent {
  readonly clients: Map<number, string>;
}

/** See the module. */
export class SharingChecker {
  readonly #windowBytesMax: number;
  readonly #underWayMax: number;
  readonly #findings: Findings;
  readonly #streams = new Map<number, Stream>();
  readonly #order: SharedOrderChecker;
  /** Streams that a trainer has read since it came, by trainer. */
  readonly #reading = new Map<string, Set<number>>();
  /** What trainers were sent, by trainer and stream. */
  readonly #sent = new Map<string, Sent>();
  #delivered = 0;
  #skipped = 0;

  /** @param underWayMax How many elements a trainer asks for at a time. */
  constructor(windowBytesMax: number, underWayMax: number, findings: Findings) {
    this.#windowBytesMax = windowBytesMax;
    this.#underWayMax = underWayMax;
    this.#findings = findings;
    this.#order = new SharedOrderChecker(findings);
  }

  /** Elements that training loops have taken. */
  get delivered(): number {
    return this.#delivered;
  }

  /** Elements that they have missed while they were there. */
  get skipped(): number {
    return this.#skipped;
  }

  /** What to give to `ActorSystem.inspect` of a worker's node. @param lives Whether this life is not over. */
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

  /** A trainer comes, for the first time or again: what its client before had fetched may be lost. */
  came(trainer: string): void {
    this.#reading.set(trainer, new Set());
  }

  /** A training loop has taken an element, before which `skipped` were said to be missed. */
  took(trainer: string, { stream, place }: SharedElement, skipped: number): void {
    this.#delivered++;
    const last = this.#order.took(trainer, { stream, place });
    const reading = this.#reading.get(trainer)!;
    const isFirst = !reading.has(stream);
    reading.add(stream);
    const before = isFirst ? this.#sentBefore(trainer, { stream, place }) : last;
    // Whoever was sent nothing yet begins at the back of the window: that was looked at then.
    if (before === undefined) return;
    const missed = place - before - 1;
    const what = `${trainer} took ${place} of stream ${stream} after ${before}`;
    // What was on its way from a worker that is gone is gone with it.
    const unsaid = missed - skipped - this.#sentToOthers(trainer, stream, before, place);
    if (unsaid !== 0 && !this.#streams.get(stream)!.lives()) return;
    // What its client before had asked for when it left may have been meant for that, and not be sent.
    if (unsaid < 0 || unsaid > (isFirst ? this.#underWayMax : 0)) {
      this.#findings.add(`${what}, and was told of ${skipped} it missed`);
    }
    if (missed <= 0 || skipped === 0) return;
    this.#skipped += missed;
    const since = this.#bytesFrom(stream, place - 1);
    if (since > this.#windowBytesMax) return;
    this.#findings.add(
      `${what}, though the ${since} bytes from ${place - 1} on fit a window of ` +
        `${this.#windowBytesMax}`,
    );
  }

  /** The last place that earlier clients of a trainer were sent, where it goes on at another. */
  #sentBefore(trainer: string, { stream, place }: SharedElement): number | undefined {
    const { clients } = this.#sent.get(`${trainer} ${stream}`)!;
    const client = clients.get(place)!;
    const others = [...clients].filter(([other, by]) => by !== client && other < place);
    return others.length === 0 ? undefined : Math.max(...others.map(([other]) => other));
  }

  /** How many between two places a client before it was sent, which had asked before it left. */
  #sentToOthers(trainer: string, stream: number, before: number, place: number): number {
    const { clients } = this.#sent.get(`${trainer} ${stream}`)!;
    const client = clients.get(place)!;
    return [...clients].filter(([at, by]) => by !== client && at > before && at < place).length;
  }

  #sends({ node, incarnation }: Ref, answer: ElementAnswer | null): void {
    if (answer?.kind !== "element") return;
    const { stream, place } = decodeMessage(answer.element.bytes) as SharedElement;
    const key = `${node} ${stream}`;
    const known = this.#sent.get(key);
    if (known !== undefined) {
      if (!known.clients.has(place)) known.clients.set(place, incarnation!);
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

  /** How much has come into a stream's window from a place on. */
  #bytesFrom(stream: number, place: number): number {
    const { sums } = this.#streams.get(stream)!;
    return sums.at(-1)! - (sums[place - 1] ?? 0);
  }

  #produces(answer: ElementAnswer | null, lives: () => boolean): void {
    if (answer?.kind !== "element") return;
    const { bytes } = answer.element;
    const { stream, place } = decodeMessage(bytes) as SharedElement;
    if (!this.#streams.has(stream)) this.#streams.set(stream, { sums: [], lives });
    const { sums } = this.#streams.get(stream)!;
    // Asked for again, and so answered again, before the next one was asked for.
    if (place >= 0 && place === sums.length - 1) return;
    if (place !== sums.length) {
      this.#findings.add(`stream ${stream} gave its window ${place} after ${sums.length - 1}`);
    }
    sums.push((sums.at(-1) ?? 0) + Math.max(ITEM_BYTES_MIN, bytes.byteLength));
  }

  #reports({ name, tasks }: HeartbeatRequest): void {
    const held = tasks.reduce((sum, { frontStats }) => sum + (frontStats?.bufferedBytes ?? 0), 0);
    if (held <= this.#windowBytesMax) return;
    this.#findings.add(`${name} holds ${held} bytes, of ${this.#windowBytesMax} for windows`);
  }
}

type HeartbeatRequest = RequestOf<DispatcherProtocol, "workerHeartbeat">;
